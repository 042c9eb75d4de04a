import { LockKeyError, LockStoreUnavailableError } from 'nestjs-holdfast';
import type { InterventionRequest, LockAdmin, SeenLock } from 'nestjs-holdfast/admin';

export interface SeveralOutcome {
  readonly status: 'done';
  readonly keys: readonly string[];
  /** Keys that were free already. */
  readonly nothing: readonly string[];
  /** Keys that other holders have by now. */
  readonly refused: readonly string[];
  /** Keys whose release Redis did not confirm. */
  readonly unconfirmed: readonly string[];
  /** Keys that no lock can have: other software uses them. */
  readonly invalid: readonly string[];
  readonly notRecorded?: string;
}

/** One after the other. Each is an entry of the audit log. */
export async function releaseSeveral(
  admin: LockAdmin,
  locks: readonly SeenLock[],
  why: InterventionRequest,
): Promise<SeveralOutcome> {
  const keys: string[] = [];
  const nothing: string[] = [];
  const refused: string[] = [];
  const unconfirmed: string[] = [];
  const invalid: string[] = [];
  let notRecorded: string | undefined;
  for (const lock of locks) {
    try {
      const outcome = await admin.release(lock, why);
      if (outcome.status === 'nothing') nothing.push(lock.key);
      else if (outcome.status === 'refused') refused.push(lock.key);
      else {
        keys.push(...outcome.keys);
        unconfirmed.push(...(outcome.unconfirmed ?? []));
        notRecorded ??= outcome.notRecorded;
      }
    } catch (error) {
      // The operator needs to know what was done before, whatever this error is.
      if (error instanceof LockKeyError) invalid.push(lock.key);
      else if (error instanceof LockStoreUnavailableError || keys.length > 0)
        unconfirmed.push(lock.key);
      else throw error;
    }
  }
  const facts = { keys, nothing, refused, unconfirmed, invalid };
  return { status: 'done', ...facts, ...(notRecorded !== undefined && { notRecorded }) };
}
