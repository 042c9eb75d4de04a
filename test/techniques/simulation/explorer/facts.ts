/** What has happened in a world, in its order. The picture and the log are made from these, and from nothing else. */
import type { Mode } from '../scenario.js';
import type { LockLossReason } from '../../../../lib/errors.js';

/** One call for the lock. */
interface OfCall {
  readonly process: number;
  /** Tells the calls of a world apart. */
  readonly call: string;
}

export type Fact = { readonly atMs: number } & (
  | { readonly type: 'starts' | 'ready' | 'resumes' | 'dies'; readonly process: number }
  | { readonly type: 'pauses'; readonly process: number; readonly forMs: number }
  | (OfCall & { readonly type: 'asks'; readonly mode: Mode })
  | (OfCall & { readonly type: 'granted'; readonly token: number })
  /** Its holder may rely on it until then, by the holder's own clock. */
  | (OfCall & { readonly type: 'holds'; readonly untilMs: number })
  | (OfCall & { readonly type: 'renewed' | 'jeopardy'; readonly untilMs: number })
  | (OfCall & { readonly type: 'lost'; readonly reason: LockLossReason })
  | (OfCall & { readonly type: 'ends work' })
  | (OfCall & { readonly type: 'released'; readonly isInTime: boolean })
  | (OfCall & { readonly type: 'refused' | 'failed'; readonly why: string })
  /** At the database, which keeps the largest token that it has seen. */
  | (OfCall & {
      readonly type: 'writes';
      readonly token: number;
      readonly isAccepted: boolean;
      readonly newestToken: number;
    })
  /** A node has other holders of the key than before, or keeps it for another time. */
  | {
      readonly type: 'says';
      readonly node: number;
      readonly holders: readonly number[];
      readonly waiting: number;
      readonly untilMs: number;
    }
  | { readonly type: 'node stops'; readonly node: number; readonly data: 'kept' | 'lost' }
  | { readonly type: 'node starts'; readonly node: number }
  | { readonly type: 'cut' | 'joined'; readonly process: number; readonly node: number }
  | { readonly type: 'network'; readonly latencyMs: number; readonly lossRate: number }
);

type WithoutTime<Each> = Each extends unknown ? Omit<Each, 'atMs'> : never;

/** A fact before its time is written beside it. */
export type News = WithoutTime<Fact>;
