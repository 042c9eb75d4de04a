/**
 * Locks on a majority of three independent Redis masters, while masters die and come back. It starts the masters itself.
 *
 * How to use a quorum is in shop.module.ts, how to watch it in health.controller.ts; the rest is a shop, its customers, and this story.
 */
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService, LockStoreUnavailableError, type StoreHealth } from 'nestjs-holdfast';
import { ensureRedisServer } from '../../../scripts/redis-server.mjs';
import { Customers, CUSTOMERS_PER_ORDER } from './customers.js';
import { Ledger } from './ledger.js';
import { Master } from './master.js';
import { ShopModule } from './shop.module.js';

/** How long each part of the story is watched at least. */
const WATCH_MS = 1_500;

/** What customers get while the shop works: one of them pays the order, the others are refused. */
const AT_WORK = [201, 409];

const say = (text: string): void => {
  console.log(`redlock: ${text}`);
};

const program = ensureRedisServer(() => undefined);
const ledger = new Ledger();

async function main(): Promise<void> {
  const masters = await Promise.all([1, 2, 3].map(() => Master.start(program)));
  const [first, second, third] = masters as [Master, Master, Master];
  say(`three Redis masters that know nothing of each other: ${namesOf(masters)}`);

  // Two instances of the shop; here in one process, elsewhere on two machines.
  const shops = await Promise.all([openShop(masters), openShop(masters)]);
  const urls = await Promise.all(shops.map((shop) => shop.getUrl()));
  const [url = ''] = urls;
  say(`the shop is open, at ${urls.join(' and ')}`);
  say(`health: ${await healthOf(url)}`);

  const customers = new Customers(urls);
  say(`${CUSTOMERS_PER_ORDER} customers at once want to pay each order`);
  await watch('all three masters are there', customers, AT_WORK);

  await first.kill();
  say(`KILLED ${first.name} in the middle of it`);
  say(`health: ${await healthOf(url)}`);
  await watch('one of three is dead, locks go on', customers, AT_WORK);

  await first.restart();
  say(`RESTARTED ${first.name}`);
  say(`health: ${await healthIs(url, (health) => health.nodes.every((node) => node.reachable))}`);
  await watch('healed', customers, AT_WORK);

  await Promise.all([second.kill(), third.kill()]);
  say(`KILLED ${second.name} and ${third.name}`);
  say(`health: ${await healthIs(url, (health) => !health.hasQuorum)}`);
  await sleep(1_000); // payments that had begun under their locks have ended
  await watch('two of three are dead, nothing runs unlocked', customers, [503]);
  say(`what a call is told: ${await failureIn(shops[0])}`);

  await Promise.all([second.restart(), third.restart()]);
  say(`RESTARTED ${second.name} and ${third.name}`);
  say(`health: ${await healthIs(url, (health) => health.nodes.every((node) => node.reachable))}`);
  await sleep(1_000); // customers come back after the Retry-After of their 503
  await watch('all three are there again, so work goes on', customers, AT_WORK);

  const orders = await customers.goHome();
  say(`the end: ${orders} orders, ${ledger.paid} paid, ${ledger.paidTwice} paid twice`);
  await Promise.all(shops.map((shop) => shop.close()));
  if (ledger.paid !== orders || ledger.paidTwice > 0) process.exitCode = 1;
}

async function openShop(masters: readonly Master[]): Promise<INestApplication> {
  const module = ShopModule.on(
    masters.map(({ url }) => url),
    ledger,
  );
  // In an application of yours let it log: it says of each master when it is gone and when it is back.
  const app = await NestFactory.create(module, { logger: false, forceCloseConnections: true });
  await app.listen(0, '127.0.0.1');
  return app;
}

/** Says what customers were answered meanwhile, and what was paid. On a busy machine it takes until they had each of these answers. */
async function watch(title: string, customers: Customers, until: readonly number[]): Promise<void> {
  const paidBefore = ledger.paid;
  customers.answers();
  await sleep(WATCH_MS);
  while (!customers.had(until)) await sleep(50);
  const answers = [...customers.answers()].sort(([a], [b]) => a - b);
  const counts = answers.map(([status, times]) => `${times} × ${status}`).join(', ');
  const paid = ledger.paid - paidBefore;
  say(`${title}: ${paid} orders paid, ${ledger.paidTwice} ever paid twice; answers: ${counts}`);
}

/** GET /health, in one line. */
async function healthOf(url: string): Promise<string> {
  return toText(await fetch(`${url}/health`));
}

/** The same, as soon as it is as it should be. */
async function healthIs(url: string, isSo: (health: StoreHealth) => boolean): Promise<string> {
  for (;;) {
    const response = await fetch(`${url}/health`);
    if (isSo((await response.clone().json()) as StoreHealth)) return toText(response);
    await sleep(50);
  }
}

async function toText(response: Response): Promise<string> {
  const { nodes, quorum, hasQuorum } = (await response.json()) as StoreHealth;
  const states = nodes.map(({ node, reachable }) => `${node} ${reachable ? 'up' : 'DOWN'}`);
  const verdict = `${quorum} of ${nodes.length} needed: ${hasQuorum ? 'quorum' : 'NO QUORUM'}`;
  return `${response.status}, ${verdict} (${states.join(', ')})`;
}

/** What happened at each node; for the log, customers are told no names. */
async function failureIn(shop: INestApplication | undefined): Promise<string> {
  try {
    await shop?.get(LockService).acquire('order:0', { wait: 0 });
  } catch (error) {
    if (!(error instanceof LockStoreUnavailableError)) throw error;
    const failures = error.nodes.map(({ node, kind, message }) => `${node} ${kind}: ${message}`);
    return `${error.name} (${error.getStatus()}): ${failures.join('; ')}`;
  }
  throw new Error('It was granted a lock.');
}

const namesOf = (masters: readonly Master[]): string => masters.map(({ name }) => name).join(', ');

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    Master.killAll();
    process.exit(128 + constants.signals[signal]);
  });
}

try {
  await main();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  Master.killAll();
}
