import { LockLostError, LockStoreUnavailableError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { CallSites, type CallSite } from '../lease/call-site.js';
import type { Foundation } from '../lease/foundation.js';
import { ForgottenLocks, type ForgottenLocksMode } from '../lease/forgotten-locks.js';
import { LeaseKeeper } from '../lease/lease-keeper.js';
import { SectionTimes } from '../lease/section-times.js';
import { LimitedWarnings } from '../observe/limited-warnings.js';
import type { Log } from '../observe/log.js';
import { Recorder } from '../observe/recorder.js';
import { OnceRunner } from '../once/once-runner.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { resolveOptions, type ResolvedOptions } from '../options/resolve-options.js';
import { LockQueue } from '../queue/lock-queue.js';
import { DriverStore } from '../store/driver/driver-store.js';
import type { LeaseStore, LockStore } from '../store/lock-store.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';
import { redisLockStore } from '../store/redis/redis-lock-store.js';
import type { Runtime } from '../time/runtime.js';
import { Scheduler } from '../time/scheduler.js';
import type { Machine } from './machine.js';
import { Interventions } from './interventions.js';
import { Replacing } from './replacing.js';
import { known, Presence } from './presence.js';
import { errorPresenter } from './present-errors.js';
import { Section } from '../sections/section.js';

/** What the parts stand on. */
export interface EngineContext {
  readonly runtime: Runtime;
  readonly log: Log;
  /** Names the service in events and traces. */
  readonly name?: string | undefined;
  /** Where it runs. Without it, the service does not publish its identity. */
  readonly machine?: Machine | undefined;
}

/** What a lock service consists of. */
export type Components = ReturnType<typeof compose>;

/** @throws LockConfigurationError for options that are wrong */
export function compose(given: LockModuleOptions, context: EngineContext) {
  const { runtime, log, name } = context;
  const options = resolveOptions(given);
  const warn = (message: string): void => {
    log.warn(message);
  };
  const present = errorPresenter(options.errors, log);
  const recorder = new Recorder(log, runtime, name);
  const scheduler = new Scheduler(runtime);
  /** Each of one kind. In an outage, they can come by the thousand. */
  const warnings: LimitedWarnings[] = [];
  /** For warnings of one kind. */
  const limited = (): ((message: string) => void) => {
    const kind = new LimitedWarnings(warn, scheduler);
    warnings.push(kind);
    return kind.warn;
  };
  const warnOfLoss = limited();
  const store = createStore(options, runtime, warn);
  /** Missing with the option `errors.retryAfter: 'lease'`. */
  const sectionTimes =
    options.errors.retryAfter === 'lease'
      ? undefined
      : new SectionTimes(() => runtime.now().monotonicMs);
  const foundation: Foundation = { store, scheduler, recorder, options, present, sectionTimes };
  const keeper = new LeaseKeeper(foundation);
  const forgotten = new ForgottenLocks({
    mode: options.forgottenLocks ?? usualForgottenLocks(),
    ...{ runtime, keeper, warn: limited() },
  });
  const queue = new LockQueue({ ...foundation, keeper });
  const once = new OnceRunner(foundation, warn);
  recorder.on('unavailable', (event) => {
    if (event.operation === 'release') warnOfLoss(new LockStoreUnavailableError(event).detail);
  });
  recorder.on('lost', (event) => {
    // A warning of its own has named the place; and to be replaced is what the application asked for.
    if (event.reason === 'forgotten' || event.reason === 'replaced') return;
    warnOfLoss(new LockLostError(event).detail);
  });
  recorder.on('limitMismatch', ({ keys, limit, otherLimit }) => {
    warnOfLoss(
      `${quoteKeys(keys)} is asked for with limit ${String(limit)}, and is held by others with limit ${String(otherLimit)}. Each call goes by its ` +
        'own limit. State the same one everywhere, or set one for all: locks.limiter(key, { limit }).setLimit(n).',
    );
  });
  // A driver keeps locks, and nothing about who holds them.
  const isDriver = options.location.kind === 'driver';
  const machine = isDriver ? undefined : options.instance && context.machine;
  const presence = new Presence({
    ...{ store: store.admin, keeper, queue, scheduler, log, ttlMs: options.ttlMs, service: name },
    machine: machine && { ...machine, ...known(options.instance ?? {}) },
  });
  const interventions = new Interventions(store, presence);
  return {
    ...foundation,
    ...{ runtime, log, keeper, queue, once, presence, forgotten, warnings },
    sites: new CallSites(runtime),
    interventions,
    replacing: new Replacing({ store, queue, keeper, interventions, presence, scheduler }),
    /** Only in development. */
    reportOutlivedWork: isDevelopment() ? outlivedWorkReport(limited()) : undefined,
    storeWarning: storeWarning(options),
  };
}

/**
 * In development a forgotten lock is a mistake to report. In production the lock may be meant to last. In tests it
 * often stands for the lock of another process.
 */
const usualForgottenLocks = (): ForgottenLocksMode => (isDevelopment() ? 'release' : 'keep');

const environment = (): string => process.env.NODE_ENV ?? '';

/** Whether mistakes of the application should be looked for and logged. */
const isDevelopment = (): boolean => !['production', 'test'].includes(environment());

/** What is wrong with where locks are kept, although they are granted. */
function storeWarning({ location }: ResolvedOptions): string | undefined {
  if (location.kind !== 'memory' || environment() !== 'production') return undefined;
  return (
    'Locks are kept in the memory of this process only, and NODE_ENV is "production": a second process would get the same lock at the same ' +
    'time. Give redis: \'redis://…\' instead of "store".'
  );
}

/**
 * Finds work that continues after its section, because a promise in it was not awaited. Such work is known by the calls
 * that it makes. The function reports the calling code, if it is such work, and what it has done.
 */
const outlivedWorkReport =
  (warn: (message: string) => void) =>
  (did: () => string, siteOf: () => CallSite | undefined): void => {
    const section = Section.outlived();
    if (section === undefined) return;
    const place = siteOf()?.place;
    const where = place === undefined ? '' : `, at ${place}`;
    warn(
      `Work under the lock of ${quoteKeys(section.lock.keys)} continues after its section has ended, without that lock: it has ${did()}${where}. ` +
        'Await or return this work in the function that run() or the decorator belongs to.',
    );
  };

/** The store that the options ask for. */
function createStore(
  options: ResolvedOptions,
  runtime: Runtime,
  warn: (message: string) => void,
): LockStore {
  const { location } = options;
  if (location.kind === 'store') return location.store;
  if (location.kind === 'memory') return new MemoryLockStore(runtime);
  if (location.kind === 'redis')
    return redisLockStore({ ...options, redis: location.redis, warn, runtime });
  const store: LeaseStore = new DriverStore({ ...options, driver: location.driver, runtime });
  // What only the other stores can do is not asked of it: `needsOneRedis` and `needsRedis` refuse those calls.
  return store as LockStore;
}
