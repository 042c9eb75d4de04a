import { LockConfigurationError } from '../../errors.js';
import { OTHER_WORDS } from '../../options/unknown-option.js';
import type { CronLock as CronLockSignature } from './cron-lock.types.js';
import { lockingDecorator } from './decorate.js';
import type { FireTime } from './fire-time.js';
import type { LockDecorator } from './locked-method.js';
import { CRON_LOCK } from './method-options.js';
import { lockedPromise } from './with-lock.decorator.js';

/** A process may be that late, and a run may take that long, however often the job runs. */
const SHORTEST_MS = 60_000;
const LONGEST_KEPT_MS = 600_000;
/** A timer of `@Interval` fires a little later each time. */
const OF_AN_INTERVAL = 0.9;

const SKIPS = 'A run whose key is taken is skipped. For anything else use @WithLock.';

const DECORATOR: LockDecorator = {
  called: '@CronLock',
  options: CRON_LOCK,
  elsewhere: {
    ...OTHER_WORDS,
    ...{ wait: SKIPS, onLocked: SKIPS },
    ttl: 'The lease lasts for the "ttl" of the module, and at least for "atLeast".',
    minHold: 'Give "atLeast".',
    maxHold: 'Give "atMost".',
    lockAtLeastFor: 'Give "atLeast".',
    lockAtMostFor: 'Give "atMost".',
    name: "The name is the first argument: @CronLock('report').",
  },
  scheduled: ({ atLeastMs, atMostMs }, fireTime) => {
    const pauseMs = fireTime.shortestPauseMs();
    const ofSchedule = fireTime.isKnown && pauseMs !== undefined;
    const maxHold = atMostMs ?? (ofSchedule ? Math.max(pauseMs, SHORTEST_MS) : undefined);
    return {
      wait: 0,
      minHold: atLeastMs ?? keptMs(fireTime, pauseMs),
      ttlCoversMinHold: true,
      ...(maxHold !== undefined && { maxHold }),
    };
  },
};

/** @throws LockConfigurationError where no schedule is known */
function keptMs(fireTime: FireTime, pauseMs: number | undefined): number {
  if (fireTime.isKnown)
    return Math.min(Math.max(pauseMs ?? SHORTEST_MS, SHORTEST_MS), LONGEST_KEPT_MS);
  if (pauseMs !== undefined) return Math.floor(pauseMs * OF_AN_INTERVAL);
  throw new LockConfigurationError(
    'The method has neither @Cron nor @Interval, so nothing says for how long its key is to stay taken. ' +
      'Give "atLeast", such as half of the time between two runs: { atLeast: \'30s\' }.',
  );
}

/**
 * Has one process run a job for each time of its schedule; the others skip it. Above or below `@Cron` or `@Interval`, or
 * on a method that a job of `SchedulerRegistry` calls.
 *
 * With `@Cron`, the key is the name and the time for which the run was scheduled, which is the same in all processes.
 * The key stays taken for `atLeast`, so that a process that is late skips the run, too.
 *
 * @param name of the job, the same in all processes
 * @throws LockStoreUnavailableError when the store does not reply
 * @throws LockLostError when the lock was lost while the job ran, or the job took longer than `atMost`
 * @throws LockServiceClosedError, LockNotBoundError
 * @example
 * ```ts
 * import { Cron } from '@nestjs/schedule';
 * import { CronLock } from 'nestjs-holdfast';
 *
 * class Reports {
 *   @Cron('0 6 * * *')
 *   @CronLock('report')
 *   async write(): Promise<void> {
 *     await writeReport();
 *   }
 * }
 * ```
 */
export const CronLock: CronLockSignature = (name, options) =>
  lockingDecorator(DECORATOR, name, options, ({ where, kind }) => {
    if (typeof name !== 'string')
      throw new LockConfigurationError(`${where} needs one name: @CronLock('report').`);
    if (kind === 'iterable')
      throw new LockConfigurationError(
        `${where}: nothing iterates what the generator of a job yields. Make it an async method.`,
      );
    return lockedPromise;
  });
