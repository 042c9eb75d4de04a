/**
 * One of several processes whose callers want the same few locks all the time, and write down what they get. Its only argument is a
 * `ClientSettings` as JSON. It says `ready` to its parent, and ends when that says `finish`, or is gone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireOptions } from '../../../lib/options/acquire-options.js';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { Locks } from '../../support/locks.js';
import { CallNotes } from './call-notes.js';
import { Candidate, type LeadPlan } from './candidate.js';
import type { News, Order } from './client-process.js';
import { drawWork, type Habits } from './draw-work.js';
import { Recorder } from './history.js';
import { JOBS, KEYS, LEADER, LONGEST_TTL_MS, ttlOf, TTLS_MS } from './plan.js';
import { Random } from './random.js';
import { type How, type Parcel, RecordedCalls } from './recorded-calls.js';

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

/** Enough that some of them wait for the same key, and take turns. */
const CALLERS = 5;
const LONGEST_WAIT_MS = 3_000;

const settings = JSON.parse(process.argv[2] ?? '') as ClientSettings;
const { slot, name: client, seed, folder, urls, options, sabotage } = settings;

const recorder = new Recorder(folder, `client-${client}`);
const redis = sabotage === 'one-node' ? urls.slice(slot % urls.length).slice(0, 1) : urls;
const locks = new Locks({ ...options, redis: redis.length === 1 ? redis[0]! : redis });
const notes = new CallNotes({
  ...{ recorder, client },
  believesToHold: sabotage === 'ignores-loss' ? () => true : undefined,
});
const tell = (news: News): void => void process.send?.(news);
const calls = new RecordedCalls(notes, (detached) => tell({ detached }));
const finishing = new AbortController();

/** Locks that other processes have detached. */
const attached = new Set<Promise<void>>();

function attach(parcel: Parcel): void {
  if (finishing.signal.aborted) return;
  const held = calls.attach(locks, parcel).finally(() => attached.delete(held));
  attached.add(held);
}

/** The first caller of each process holds locks for long, so that a process that is stopped or killed mostly holds one. */
async function call(caller: number): Promise<void> {
  const random = new Random(seed).fork(caller);
  while (!finishing.signal.aborted) {
    if (sabotage === 'ignores-loss' && caller === 0) await holdOwnKey();
    else await callOnce(random, caller === 0);
    await sleep(random.between(0, 20));
  }
}

/** For longer than a process is stopped, and each process another key: whichever is stopped holds one that others want. */
async function holdOwnKey(): Promise<void> {
  const key = KEYS[slot % KEYS.length]!;
  await calls.make(locks, {
    ...{ how: 'acquire', keys: [key], waitMs: LONGEST_WAIT_MS, holdMs: 4 * LONGEST_TTL_MS },
    options: { ttl: ttlOf(key), wait: LONGEST_WAIT_MS },
  });
}

const SHARED = { mode: 'shared' } as const;

/** Over several masters there are exclusive locks, and nothing else. */
const isOne = urls.length === 1;

const MODES: readonly AcquireOptions[] = isOne
  ? [...[{}, {}, {}, {}, SHARED, SHARED], ...[{ limit: 3 }, { limit: 3, places: 2 }]]
  : [{}];

const HABITS: Habits = {
  detaches: isOne ? 0.1 : 0,
  ttlsMs: TTLS_MS,
};

const LEAD: LeadPlan = { name: LEADER, ttlMs: LONGEST_TTL_MS, rotateEveryMs: 1_500 };

async function callOnce(random: Random, holdsForLong: boolean): Promise<void> {
  if (isOne && random.chance(0.1)) {
    const ttl = LONGEST_TTL_MS;
    await calls.make(locks, {
      ...{ how: 'once', keys: [random.pick(JOBS)], waitMs: LONGEST_WAIT_MS },
      holdMs: random.between(0, holdsForLong ? 2 * ttl : 40),
      options: { ttl, wait: LONGEST_WAIT_MS },
    });
    return;
  }
  const size = random.chance(0.25) ? random.between(2, 3) : 1;
  const keys = random.sample(KEYS, size);
  const ttl = ttlOf(keys[0]!);
  const how = random.pick<How>(['acquire', 'acquire', 'tryAcquire', 'run']);
  const wait = how === 'tryAcquire' ? 0 : random.between(100, LONGEST_WAIT_MS);
  const patienceMs = random.chance(0.15) ? random.between(10, 1_000) : undefined;
  const shortMs = random.between(0, random.chance(0.5) ? 4 : 40);
  const holdMs = holdsForLong ? random.between(150, ttl + 800) : shortMs;
  const waitMs = Math.min(wait, patienceMs ?? Infinity);
  const options = { ...random.pick(MODES), ttl, wait };
  await calls.make(locks, {
    ...{ how, keys, waitMs, options },
    ...(patienceMs !== undefined && { patienceMs }),
    ...drawWork(random, { how, options, holdMs }, HABITS),
  });
}

process.once('disconnect', () => process.exit(1)); // nobody is left to read what this one writes
process.on('message', (order: Order) => {
  if (typeof order === 'object') attach(order.attach);
  else finishing.abort();
});

await locks.open();
tell('ready');
const candidate = new Candidate(notes, locks, {
  plan: LEAD,
  random: new Random(seed).fork(CALLERS),
});
await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
await Promise.all(attached);
// The shutdown ends a candidacy as well.
if (slot % 2 === 0) await candidate.stop();
await locks.shutdown();
candidate.ended();
recorder.record({ type: 'ended', client });
recorder.close();
process.removeAllListeners('disconnect');
process.disconnect(); // a service that has shut down leaves nothing that keeps the process alive
