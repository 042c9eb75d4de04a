/**
 * One process of an engine test: several services on one store, whose callers want what their crew wants. Its only argument is a
 * `MixSettings` as JSON. It says `ready` to its parent, begins when told to, says `alive` as long as its event loop is, and ends when told
 * to finish, or when the parent is gone.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import type { AcquireOptions } from '../../lib/options/acquire-options.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { Locks } from '../support/locks.js';
import { Recorder } from '../faults/history.js';
import { range } from '../faults/plan.js';
import { Random } from '../faults/random.js';
import { type How, RecordedCalls } from '../faults/recorded-calls.js';
import type { StoreAddress } from './backends.js';
import { BEAT_MS } from './liveness.js';
import { type Crew, FAIR_WAIT_MS } from './plan.js';

export interface MixSettings {
  readonly name: string;
  readonly seed: number;
  readonly folder: string;
  readonly address: StoreAddress;
  readonly crews: readonly Crew[];
}

const { name, seed, folder, address, crews } = JSON.parse(process.argv[2] ?? '') as MixSettings;

const recorder = new Recorder(folder, `mix-${name}`);
const calls = new RecordedCalls(recorder, name);
const finishing = new AbortController();
const memory = new MemoryLockStore();
const cluster =
  address.kind === 'cluster'
    ? new Cluster(
        address.ports.map((port) => ({ host: '127.0.0.1', port })),
        { lazyConnect: true },
      )
    : undefined;

function openService({ user, database = 0 }: Crew): Locks {
  if (address.kind === 'memory') return new Locks({ store: memory });
  if (cluster !== undefined) return new Locks({ redis: cluster });
  const who = user === undefined ? '' : `${user}:${user}@`;
  const urls = address.ports.map((port) => `redis://${who}127.0.0.1:${port}/${database}`);
  return new Locks({ redis: urls.length === 1 ? urls[0]! : urls });
}

async function callAgainAndAgain(crew: Crew, locks: Locks, random: Random): Promise<void> {
  const { startAtMs = 0, rounds = Infinity, pauseMs } = crew;
  await sleep(startAtMs);
  for (let round = 0; round < rounds && !finishing.signal.aborted; round += 1) {
    await callOnce(crew, locks, random);
    await pause(random.between(...pauseMs));
  }
}

/** Shorter than a timer can be, if need be. */
const pause = (ms: number): Promise<unknown> => (ms === 0 ? nextTurn() : sleep(ms));

async function callOnce(crew: Crew, locks: Locks, random: Random): Promise<void> {
  const how = random.pick<How>(crew.hows ?? ['run']);
  const keys = random.sample(crew.keys, random.between(...(crew.keysAtOnce ?? [1, 1])));
  const ttl = random.pick(crew.ttlsMs);
  const wait = how === 'tryAcquire' ? 0 : random.pick(crew.waitsMs);
  const holdMs = random.between(...crew.holdMs);
  const options: AcquireOptions = { ...optionsOf(random.pick(crew.modes ?? ['exclusive'])), ttl };
  if (random.chance(crew.minHold ?? 0)) options.minHold = random.between(10, 40);
  const patienceMs = random.chance(crew.impatience ?? 0) ? random.between(0, 200) : undefined;
  await calls.make(locks, {
    ...{ how, keys, holdMs },
    waitMs: Math.min(wait, patienceMs ?? Infinity),
    ...(patienceMs !== undefined && { patienceMs }),
    options: { ...options, wait },
  });
}

function optionsOf(mode: string): AcquireOptions {
  const limit = /^limit:(\d+)$/.exec(mode)?.[1];
  if (limit !== undefined) return { limit: Number(limit) };
  return mode === 'shared' ? { mode } : {};
}

/** Opens the service, and has a caller wait: until its inbox is connected, nobody can be called, and on a busy machine that takes time. */
async function waitOnce(locks: Locks, index: number): Promise<void> {
  await locks.open();
  const key = `warm-up:${name}:${String(index)}`;
  const lock = await locks.acquire(key);
  const waiting = locks.acquire(key, { wait: FAIR_WAIT_MS });
  await nextTurn();
  await lock.release();
  await (await waiting).release();
}

process.once('disconnect', () => process.exit(1)); // nobody is left to read what this one writes

const services = crews.map((crew) => range(crew.services).map(() => openService(crew)));
// What a service cannot open, its callers will see.
await Promise.allSettled(services.flat().map(waitOnce));
const begun = new Promise<void>((resolve) => {
  process.on('message', (message) => (message === 'begin' ? resolve() : finishing.abort()));
});
process.send?.('ready');
await begun;
const blocks = monitorEventLoopDelay({ resolution: 10 });
blocks.enable();
const beats = setInterval(() => {
  recorder.record({ type: 'beat', client: name });
  process.send?.('alive');
}, BEAT_MS);
const chance = new Random(seed);
await Promise.all(
  crews.flatMap((crew, index) =>
    services[index]!.flatMap((locks, service) =>
      range(crew.callers).map((caller) =>
        callAgainAndAgain(crew, locks, chance.fork((index * 100 + service) * 10_000 + caller)),
      ),
    ),
  ),
);
blocks.disable();
await Promise.all(services.flat().map((locks) => locks.shutdown()));
cluster?.disconnect();
clearInterval(beats);
recorder.record({ type: 'ended', client: name, longestBlockMs: blocks.max / 1e6 });
recorder.close();
process.removeAllListeners();
process.disconnect(); // services that have shut down leave nothing that keeps the process alive
