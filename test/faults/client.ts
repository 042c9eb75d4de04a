/**
 * One of several processes whose callers want the same few locks all the time, and write down what they get. Its only argument is a
 * `ClientSettings` as JSON. It says `ready` to its parent, and ends when that says `finish`, or is gone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { LockError, LockService, type Lock, type LockModuleOptions } from 'nestjs-holdfast';
import { now, Recorder } from './history.js';
import { KEYS, ttlOf } from './plan.js';
import { Random } from './random.js';

/**
 * What a client does wrong on purpose, so that the checker has something to find: `ignores-loss` believes to hold what it was
 * granted until it gives it back, `one-node` locks on one of the servers, its own, and not on a majority.
 */
export type Sabotage = 'ignores-loss' | 'one-node';

export interface ClientSettings {
  /** Where its process stands among the others, from 0. */
  readonly slot: number;
  /** Unlike that of any other process of the run. */
  readonly name: string;
  readonly seed: number;
  readonly folder: string;
  readonly urls: readonly string[];
  readonly options: Omit<LockModuleOptions, 'redis' | 'store'>;
  readonly sabotage?: Sabotage | undefined;
}

interface Request {
  readonly ask: number;
  readonly keys: readonly string[];
  readonly ttl: number;
}

/** Enough that some of them wait for the same key, and take turns. */
const CALLERS = 5;
const LONGEST_WAIT_MS = 3_000;
const LOOK_EVERY_MS = 20;

const settings = JSON.parse(process.argv[2] ?? '') as ClientSettings;
const { slot, name: client, seed, folder, urls, options, sabotage } = settings;

Logger.overrideLogger(false);
const recorder = new Recorder(folder, `client-${client}`);
const redis = sabotage === 'one-node' ? urls.slice(slot % urls.length).slice(0, 1) : urls;
const locks = new LockService({ ...options, redis: redis.length === 1 ? redis[0]! : redis });
const finishing = new AbortController();
let asks = 0;

/** The first caller of each process holds locks for long, so that a process that is stopped or killed mostly holds one. */
async function call(caller: number): Promise<void> {
  const random = new Random(seed).fork(caller);
  while (!finishing.signal.aborted) {
    await callOnce(random, caller === 0);
    await sleep(random.between(0, 20));
  }
}

async function callOnce(random: Random, holdsForLong: boolean): Promise<void> {
  const size = random.chance(0.25) ? random.between(2, 3) : 1;
  const ask = (asks += 1);
  const keys = random.sample(KEYS, size);
  const request: Request = { ask, keys, ttl: ttlOf(keys[0]!) };
  const how = random.pick(['acquire', 'acquire', 'tryAcquire', 'run']);
  const wait = how === 'tryAcquire' ? 0 : random.between(100, LONGEST_WAIT_MS);
  const patience = random.chance(0.15) ? random.between(10, 1_000) : Infinity;
  const shortMs = random.between(0, random.chance(0.5) ? 4 : 40);
  const holdMs = holdsForLong ? random.between(150, request.ttl + 800) : shortMs;

  const giveUp = new AbortController();
  const timer = Number.isFinite(patience) ? setTimeout(() => giveUp.abort(), patience) : undefined;
  const waitMs = Math.min(wait, patience);
  recorder.record({ type: 'ask', client, ask, how, keys: request.keys, waitMs });
  try {
    const { ttl } = request;
    const { signal } = giveUp;
    if (how === 'run') {
      await run(request, { ttl, wait, signal }, holdMs);
    } else {
      const lock =
        how === 'acquire'
          ? await locks.acquire(request.keys, { ttl, wait, signal })
          : await locks.tryAcquire(request.keys, { ttl });
      if (lock === null) recorder.record({ type: 'refused', client, ask });
      else await hold(request, lock, holdMs, () => lock.release());
    }
  } catch (error) {
    recordFailure(ask, error);
  } finally {
    clearTimeout(timer);
  }
}

/** `run` gives the lock back by itself. */
async function run(
  request: Request,
  runOptions: { ttl: number; wait: number; signal: AbortSignal },
  holdMs: number,
): Promise<void> {
  let entered = false;
  try {
    await locks.run(request.keys, runOptions, async (lock) => {
      entered = true;
      await hold(request, lock, holdMs);
    });
    recorder.record({ type: 'released', client, ask: request.ask, result: 'true' });
  } catch (error) {
    if (!entered) throw error;
    recorder.record({ type: 'released', client, ask: request.ask, result: nameOf(error) });
  }
}

/** The section: looks at the lock from its first moment to its last. */
async function hold(
  { ask }: Request,
  lock: Lock,
  holdMs: number,
  release?: () => Promise<boolean>,
): Promise<void> {
  const { fencingToken, keys, signal } = lock;
  recorder.record({ type: 'granted', client, ask, keys, fencingToken });
  signal.addEventListener('abort', () => {
    recorder.record({ type: 'lost', client, ask, reason: reasonOf(signal.reason) });
  });
  const until = now() + holdMs;
  while (isHeld(ask, lock) && now() < until) {
    await sleep(Math.max(1, Math.min(LOOK_EVERY_MS, until - now())));
  }
  recorder.record({ type: 'releasing', client, ask });
  if (release === undefined) return;
  const result = await release().then(String, nameOf);
  recorder.record({ type: 'released', client, ask, result });
}

function isHeld(ask: number, lock: Lock): boolean {
  const at = now();
  const held = sabotage === 'ignores-loss' || lock.isHeld;
  if (held) recorder.record({ type: 'held', client, ask, until: at + lock.remainingMs }, at);
  return held;
}

function recordFailure(ask: number, error: unknown): void {
  if (error instanceof LockError && error.code === 'LOCK_NOT_ACQUIRED') {
    recorder.record({ type: 'refused', client, ask });
  } else recorder.record({ type: 'failed', client, ask, error: nameOf(error) });
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : String(error));

const reasonOf = (error: unknown): string =>
  String((error as { readonly reason?: unknown } | undefined)?.reason);

process.once('disconnect', () => process.exit(1)); // nobody is left to read what this one writes
process.once('message', () => finishing.abort());

await locks.open();
process.send?.('ready');
await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
await locks.shutdown();
recorder.record({ type: 'ended', client });
recorder.close();
process.removeAllListeners('disconnect');
process.disconnect(); // a service that has shut down leaves nothing that keeps the process alive
