import type ts from 'typescript';
import type { Subject } from './subject.js';
import { isTooShort, optionsText, waitText } from './values.js';

/** The defaults of nestjs-simple-redis-lock. */
const RETRY_INTERVAL_MS = 100;
const MAX_RETRY_TIMES = 600;

type Time = ts.Expression | undefined;

/** Our options for the three numbers that both `@RedisLock` and `lock()` take; `undefined` where ours would be refused. */
export function timesText(
  subject: Subject,
  [expire, interval, times]: readonly [expire: Time, interval: Time, times: Time],
): string | undefined {
  if (isTooShort(subject, expire)) return undefined;
  const isLeftOut = (value: Time): value is undefined =>
    value === undefined || subject.textOf(value) === 'undefined';
  const wait =
    isLeftOut(interval) && isLeftOut(times)
      ? "'1m'"
      : waitText(
          subject,
          isLeftOut(times) ? MAX_RETRY_TIMES : times,
          isLeftOut(interval) ? RETRY_INTERVAL_MS : interval,
        );
  return optionsText({ ttl: isLeftOut(expire) ? undefined : subject.textOf(expire), wait });
}
