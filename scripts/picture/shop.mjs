import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { freePort, startProgram } from '../demo/processes.mjs';

const RECORDER = new URL('recorder.mjs', import.meta.url);
const LIMIT_MS = 20_000;

/** A process of the shop, and what happens to its locks. */
export class Shop {
  /** The events that nobody has asked for yet, in their order: `acquired shipment:42`. */
  #events = [];
  #heard = () => undefined;

  constructor(name, url) {
    this.name = name;
    this.url = url;
  }

  static async open(name, program, redisUrl) {
    const port = await freePort();
    const env = { PORT: String(port), REDIS_URL: redisUrl, NODE_OPTIONS: `--import=${RECORDER}` };
    const child = startProgram(program, env);
    const shop = new Shop(name, `http://127.0.0.1:${port}`);
    const lines = createInterface({ input: child.stdout });
    const opened = new Promise((resolve) => {
      lines.on('line', (line) => {
        if (line.includes('The shop is open')) resolve(shop);
        if (line.startsWith('event ')) shop.#hear(line.slice('event '.length));
      });
    });
    const ended = once(child, 'exit').then(() => {
      throw new Error(`process ${name} of the shop has ended`);
    });
    ended.catch(() => undefined);
    return Promise.race([opened, ended]);
  }

  async warmUp() {
    await this.post('/orders/0/ship');
    this.#events = [];
  }

  /** What a client gets: the status, and of an error the code and when to try again. */
  async post(path) {
    const signal = AbortSignal.timeout(LIMIT_MS);
    const response = await fetch(this.url + path, { method: 'POST', signal });
    const { code } = await response.json();
    const seconds = response.headers.get('retry-after');
    return { status: response.status, code, retryAfter: seconds ?? undefined };
  }

  /** Resolves once the event has happened to the lock of the key; only later ones are left. */
  async event(name, key) {
    const deadline = Date.now() + LIMIT_MS;
    while (!this.#events.includes(`${name} ${key}`)) {
      if (Date.now() > deadline)
        throw new Error(`process ${this.name}: no "${name} ${key}", but ${this.#events.join()}`);
      await Promise.race([
        new Promise((resolve) => (this.#heard = resolve)),
        new Promise((resolve) => setTimeout(resolve, LIMIT_MS).unref()),
      ]);
    }
    this.#events.splice(this.#events.indexOf(`${name} ${key}`), 1);
  }

  /** The events of a key that nobody has asked for. */
  takeOthers(key) {
    const others = this.#events.filter((event) => event.endsWith(` ${key}`));
    this.#events = [];
    return others;
  }

  #hear(event) {
    this.#events.push(event);
    this.#heard();
  }
}
