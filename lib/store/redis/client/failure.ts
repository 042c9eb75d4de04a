import type { NodeFailure } from '../../../errors.js';
import type { Unavailable } from '../../lock-store.js';
import type { RedisSource } from './redis-client.js';

/**
 * Until when the same request fails: it may succeed by itself soon, or only after an operator has changed a setting.
 */
export type HowLong = 'for a moment' | 'for good';

/** What went wrong at a node, without secrets. */
export type Fail = (kind: NodeFailure['kind'], message: string, howLong?: HowLong) => Unavailable;

export const failuresOf =
  (source: RedisSource): Fail =>
  (kind, message, howLong = 'for a moment') => ({
    status: 'unavailable',
    nodes: [{ node: source.name, kind, message: source.redact(message) }],
    transient: howLong === 'for a moment',
  });

/** The server has refused the request. One request of a combined call may be the reason. */
export const isRefused = ({ transient, sent }: Unavailable): boolean =>
  !transient && sent !== false;
