import type { LockLostReason } from '../../lib/errors.js';

/** What the detail of a `LockLostError` says for each reason. */
export const LOSS_SENTENCES: readonly (readonly [LockLostReason, string])[] = [
  ['expired', 'its validity ran out before it was renewed'],
  ['stolen', 'another owner holds it now'],
  [
    'released-elsewhere',
    'it is no longer in the store (released by force, deleted, evicted, or the store lost its data)',
  ],
  ['store-unavailable', 'the store did not confirm a renewal before the validity ran out'],
  ['max-hold', 'it was held for longer than "maxHold"'],
  ['forgotten', 'it was never released, and no code could release it any more'],
  ['shutdown', 'the application shut down before the work ended'],
  ['released', 'it was released already'],
];
