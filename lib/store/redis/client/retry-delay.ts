import { backOffMs, type BackOff } from '../../../time/back-off.js';
import type { Runtime } from '../../../time/runtime.js';

/** Between two tries to connect. */
const RETRY: BackOff = { firstMs: 50, longestMs: 500 };

/** So much longer by chance: processes that lost one server together do not all come back in one moment, however many they are. */
const RETRY_SPREAD = 0.5;

/** How long to wait before a try to connect, by the number of tries that have failed. */
export const retryDelay =
  (runtime: Runtime) =>
  (times: number): number =>
    backOffMs(RETRY, times - 1) * (1 + runtime.random() * RETRY_SPREAD);
