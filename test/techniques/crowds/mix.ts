/**
 * One process of an engine test: several services on one store, whose callers want what their crew wants. Its only argument is a
 * `MixSettings` as JSON. It says `ready` to its parent, begins when told to, says `alive` as long as its event loop is, and ends when told
 * to finish, or when the parent is gone.
 */
import { setMaxListeners } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { thisMachine } from '../../../lib/engine/machine.js';
import type { AcquireOptions } from '../../../lib/options/acquire-options.js';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { systemRuntime } from '../../../lib/time/runtime.js';
import { Locks } from '../../support/locks.js';
import { CallNotes } from '../faults/call-notes.js';
import { Candidate } from '../faults/candidate.js';
import type { News, Order } from '../faults/client-process.js';
import { drawWork } from '../faults/draw-work.js';
import { now, Recorder } from '../faults/history.js';
import { range } from '../faults/plan.js';
import { Random } from '../faults/random.js';
import { type Call, type How, type Parcel, RecordedCalls } from '../faults/recorded-calls.js';
import type { StoreAddress } from './backends.js';
import { BEAT_MS } from './liveness.js';
import { type Crew, FAIR_WAIT_MS, type JobPlan, NEWEST } from './plan.js';
import { storeOption } from '../../../lib/options/location.js';

export interface MixSettings {
  readonly name: string;
  readonly seed: number;
  readonly folder: string;
  readonly address: StoreAddress;
  readonly crews: readonly Crew[];
}

const { name, seed, folder, address, crews } = JSON.parse(process.argv[2] ?? '') as MixSettings;

const recorder = new Recorder(folder, `mix-${name}`);
const notes = new CallNotes({ recorder, client: name });
const tell = (news: News): void => void process.send?.(news);
const finishing = new AbortController();
setMaxListeners(0, finishing.signal); // one for each that sleeps
const memory = new MemoryLockStore();
const cluster =
  address.kind === 'cluster'
    ? new Cluster(
        address.ports.map((port) => ({ host: '127.0.0.1', port })),
        { lazyConnect: true },
      )
    : undefined;

const openService = (crew: Crew): Locks => new Locks(storeOf(crew), systemRuntime, thisMachine());

function storeOf({ user, database = 0 }: Crew): LockModuleOptions {
  if (address.kind === 'memory') return { store: storeOption(memory) };
  if (cluster !== undefined) return { redis: cluster };
  if (address.group !== undefined) return { redis: address.group };
  const who = user === undefined ? '' : `${user}:${user}@`;
  const urls = address.ports.map((port) => `redis://${who}127.0.0.1:${port}/${database}`);
  return { redis: urls.length === 1 ? urls[0]! : urls };
}

/** Locks that were detached, on their way and with those who have attached them. */
const attached = new Set<Promise<void>>();

/** The callers of a service. What they detach goes to the next service of the crew. */
function callersOf(services: readonly Locks[], service: number): RecordedCalls {
  return new RecordedCalls(notes, (parcel) => {
    for (const [turn, afterMs] of parcel.afterMs.entries()) {
      const receiver = (service + 1 + turn) % services.length;
      const held = deliver(parcel, afterMs, receiver).finally(() => attached.delete(held));
      attached.add(held);
    }
  });
  async function deliver(parcel: Parcel, afterMs: number, receiver: number): Promise<void> {
    await sleep(afterMs, undefined, finishing).catch(() => undefined);
    if (!finishing.signal.aborted)
      await callersOf(services, receiver).attach(services[receiver]!, parcel);
  }
}

async function callAgainAndAgain(
  crew: Crew,
  { locks, calls }: { readonly locks: Locks; readonly calls: RecordedCalls },
  random: Random,
): Promise<void> {
  const { startAtMs = 0, rounds = Infinity, pauseMs } = crew;
  await sleep(startAtMs);
  for (let round = 0; round < rounds && !finishing.signal.aborted; round += 1) {
    await calls.make(locks, drawCall(crew, random));
    await pause(random.between(...pauseMs));
  }
}

/** Shorter than a timer can be, if need be. */
const pause = (ms: number): Promise<unknown> => (ms === 0 ? nextTurn() : sleep(ms));

/** Starts the job of a crew whenever a process of the run does. */
async function runAgainAndAgain(locks: Locks, calls: RecordedCalls, job: JobPlan): Promise<void> {
  const { name: key, everyMs, atLeastMs } = job;
  const options: AcquireOptions = { ttl: atLeastMs, minHold: atLeastMs, wait: 0 };
  while (!finishing.signal.aborted) {
    await calls.make(locks, { how: 'job', keys: [key], options, waitMs: 0, holdMs: 0 });
    await sleep(everyMs - (now() % everyMs), undefined, finishing).catch(() => undefined);
  }
}

function drawCall(crew: Crew, random: Random): Call {
  if (random.chance(crew.once ?? 0)) return drawOnce(crew, random);
  if (random.chance(crew.replaces ?? 0)) return drawReplacing(crew, random);
  const how = random.pick<How>(crew.hows ?? ['run']);
  const keys = random.sample(crew.keys, random.between(...(crew.keysAtOnce ?? [1, 1])));
  const ttl = random.pick(crew.ttlsMs);
  const wait = WAITS_MS[how] ?? random.pick(crew.waitsMs);
  const holdMs = random.between(...crew.holdMs);
  const mode = random.pick(crew.modes ?? ['exclusive']);
  const options: AcquireOptions = { ...optionsOf(mode), ttl, wait };
  if (options.limit !== undefined && crew.places) options.places = random.between(...crew.places);
  if (random.chance(crew.minHold ?? 0)) options.minHold = random.between(50, 80);
  const patienceMs = random.chance(crew.impatience ?? 0) ? random.between(0, 200) : undefined;
  return {
    ...{ how, keys, options },
    waitMs: Math.min(wait, patienceMs ?? Infinity),
    ...(patienceMs !== undefined && { patienceMs }),
    ...drawWork(
      random,
      { how, options, holdMs },
      { detaches: crew.detaches ?? 0, ttlsMs: crew.ttlsMs },
    ),
  };
}

/** A caller that polls has no place in line, and may be passed over. */
const WAITS_MS: Partial<Record<How, number>> = { tryAcquire: 0, poll: 100 };

/** All processes want the same work done at a time. */
const WORK_MS = 500;

function drawOnce(crew: Crew, random: Random): Call {
  const work = `work:${String(Math.floor(now() / WORK_MS))}`;
  const [ttl, wait] = [random.pick(crew.ttlsMs), FAIR_WAIT_MS];
  const holdMs = random.between(...crew.holdMs);
  return { how: 'once', keys: [work], options: { ttl, wait }, waitMs: wait, holdMs };
}

/** Longer than an event loop is blocked on a machine that is busy. */
const REPLACE_WAIT_MS = 2_000;

function drawReplacing(crew: Crew, random: Random): Call {
  const options = { onLocked: 'replace', replaceWait: REPLACE_WAIT_MS } as const;
  return {
    how: random.pick<How>(['run', 'acquire']),
    keys: [NEWEST],
    options: { ...options, ttl: random.pick(crew.ttlsMs) },
    // "Within about 10 s of trying."
    waitMs: FAIR_WAIT_MS + REPLACE_WAIT_MS,
    holdMs: random.between(...crew.holdMs),
  };
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
  process.on('message', (order: Order) => (order === 'begin' ? resolve() : finishing.abort()));
});
tell('ready');
await begun;
const blocks = monitorEventLoopDelay({ resolution: 10 });
blocks.enable();
const beats = setInterval(() => {
  recorder.record({ type: 'beat', client: name });
  tell('alive');
}, BEAT_MS);
const chance = new Random(seed);
const branchOf = (crew: number, service: number): number => (crew * 100 + service) * 10_000;
const candidates = crews.flatMap(({ lead: plan, callers }, index) =>
  services[index]!.flatMap((locks, service) => {
    const random = chance.fork(branchOf(index, service) + callers);
    return plan === undefined ? [] : [new Candidate(notes, locks, { plan, random })];
  }),
);
await Promise.all(
  crews.flatMap((crew, index) =>
    services[index]!.flatMap((locks, service, ofCrew) => {
      const caller = { locks, calls: callersOf(ofCrew, service) };
      return [
        ...range(crew.callers).map((number) =>
          callAgainAndAgain(crew, caller, chance.fork(branchOf(index, service) + number)),
        ),
        ...(crew.job === undefined ? [] : [runAgainAndAgain(locks, caller.calls, crew.job)]),
      ];
    }),
  ),
);
await Promise.all(attached);
blocks.disable();
// The shutdown ends a candidacy as well.
await Promise.all(candidates.filter((_, index) => index % 2 === 0).map((each) => each.stop()));
await Promise.all(services.flat().map((locks) => locks.shutdown()));
for (const each of candidates) each.ended();
cluster?.disconnect();
clearInterval(beats);
recorder.record({ type: 'ended', client: name, longestBlockMs: blocks.max / 1e6 });
recorder.close();
process.removeAllListeners();
process.disconnect(); // services that have shut down leave nothing that keeps the process alive
