import type { Held, LeaseRenewal, Unavailable } from '../../lock-store.js';

/** What one node says to a request for a lock. */
export type Vote =
  | {
      readonly status: 'granted';
      readonly fencingToken: number;
      readonly othersWait: boolean;
      readonly otherLimit?: number | undefined;
    }
  | (Omit<Held, 'status' | 'contended'> & { readonly status: 'refused'; readonly holder: string })
  | Unavailable;

/** What one node says to a renewal. */
export type RenewalVote =
  | { readonly status: 'extended' }
  /** The fence beside which each key that is not there could be put back. */
  | { readonly status: 'gone'; readonly fences: readonly (number | undefined)[] }
  | { readonly status: 'stolen' }
  | Unavailable;

/** A renewal that may put keys back which are gone, where their fences are still these. */
export interface Restoration extends LeaseRenewal {
  readonly expectedFences?: readonly (number | undefined)[];
}

/** Whose key it is, as one node sees it. */
export type InspectVote =
  | { readonly status: 'free' }
  | { readonly status: 'held'; readonly holder: string; readonly remainingMs: number }
  | Unavailable;

/** What became of one key of a renewal. */
export type KeyAnswer =
  | { readonly status: 'extended' }
  | { readonly status: 'gone'; readonly fence: number }
  | { readonly status: 'stolen' }
  | Unavailable;

const EXTENDED: RenewalVote = { status: 'extended' };

/** A lease is all or nothing over its keys: what became of the worst of them became of it. */
export function renewalVote(answers: readonly KeyAnswer[]): RenewalVote {
  const worst =
    answers.find(({ status }) => status === 'stolen') ??
    answers.find(({ status }) => status === 'gone') ??
    answers.find(({ status }) => status === 'unavailable');
  if (worst?.status !== 'gone') return worst ?? EXTENDED;
  return {
    status: 'gone',
    fences: answers.map((answer) => (answer.status === 'gone' ? answer.fence : undefined)),
  };
}
