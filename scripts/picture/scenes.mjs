/**
 * What the picture shows. A scene has lanes, and a lane has marks: events of its lock and answers to its client. Their `step` is the time
 * in the picture. Steps follow each other as the scene waits for them, so the same events make the same picture on any machine.
 */
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { OPERATOR } from './draw.mjs';

export async function playScenes(shops, redisUrl) {
  const locks = new LockService({ redis: redisUrl });
  try {
    const admin = new LockAdmin(locks);
    // A scene lasts as long as the work of the sample: the first call of a process is too slow for it.
    await Promise.all([...shops.map((shop) => shop.warmUp()), admin.describe('parcel:0')]);
    const scenes = [];
    for (const play of [conflict, handOver, loss]) {
      scenes.push(await play(...shops, admin));
    }
    return scenes;
  } finally {
    await locks.shutdown(0);
  }
}

async function conflict(a, b) {
  const scene = new Scene('Two payments of one order at once: the second gets 409', 'order:42');
  const first = scene.request(a, '/orders/42/pay');
  await first.see(1, 'acquired');
  const second = scene.request(b, '/orders/42/pay');
  await second.see(2, 'refused');
  await second.answer(2);
  await first.see(4, 'released');
  await first.answer(4);
  return scene.end();
}

async function handOver(a, b) {
  const scene = new Scene('A call that may wait: the release hands it the lock', 'shipment:42');
  const first = scene.request(a, '/orders/42/ship');
  await first.see(1, 'acquired');
  const second = scene.request(b, '/orders/42/ship');
  await second.see(2, 'waiting');
  await first.see(3, 'released');
  await first.answer(3);
  await second.see(3, 'acquired');
  await second.see(4, 'released');
  await second.answer(4);
  return scene.end();
}

async function loss(a, _b, admin) {
  const scene = new Scene('A lock is lost: its signal stops the work', 'parcel:42');
  const holder = scene.request(a, '/orders/42/ship');
  await holder.see(1, 'acquired');
  const operator = scene.command('releases parcel:42 (LockAdmin)');
  const reason = 'the shipment is cancelled';
  const seen = await admin.describe('parcel:42');
  const { status } = await admin.release(seen, { reason, by: 'picture' });
  if (status !== 'done') throw new Error('not held');
  operator.done(3);
  await holder.see(3, 'lost');
  await holder.answer(3);
  return scene.end();
}

class Scene {
  #lanes = [];

  constructor(title, key) {
    this.title = title;
    this.key = key;
  }

  request(shop, path) {
    return this.#add(new Lane(this.key, shop, path));
  }

  /** A lane of somebody who works with the locks from outside. */
  command(text) {
    const marks = [];
    this.#lanes.push({ who: OPERATOR, what: text, marks });
    return { done: (step) => marks.push({ step, event: 'done' }) };
  }

  end() {
    return {
      title: this.title,
      key: this.key,
      lanes: this.#lanes.map((lane) => lane.end?.() ?? lane),
    };
  }

  #add(lane) {
    this.#lanes.push(lane);
    return lane;
  }
}

/** One request, from what happens to its lock to its answer. */
class Lane {
  #key;
  #shop;
  #path;
  #marks = [];
  #response;

  constructor(key, shop, path) {
    [this.#key, this.#shop, this.#path] = [key, shop, path];
    this.#response = shop.post(path);
    this.#response.catch(() => undefined);
  }

  async see(step, event) {
    await this.#shop.event(event, this.#key);
    this.#marks.push({ step, event });
  }

  async answer(step) {
    this.#marks.push({ step, event: 'answer', answer: steady(await this.#response) });
  }

  end() {
    const others = this.#shop.takeOthers(this.#key);
    if (others.length > 0)
      throw new Error(`process ${this.#shop.name}: the picture leaves out ${others.join()}`);
    return { who: this.#shop.name, what: `POST ${this.#path}`, marks: this.#marks };
  }
}

/** A slow machine may answer when a second of the lease is over. */
const steady = ({ retryAfter, ...answer }) =>
  retryAfter === undefined ? answer : { ...answer, retryAfter: retryAfter.replace('29', '30') };
