import type { AuditEntry } from './lock-admin.types.js';

const ACTIONS: readonly unknown[] = ['release', 'release-instance', 'forget-once'];

/** As the store keeps it. Several masters have it, and by its id it is one entry. */
export const noteOf = ({ at, ...entry }: AuditEntry, id: string): string =>
  JSON.stringify({ id, at: at.getTime(), ...entry });

/** Every client that may write to the store can write any value: a value that is no entry is left out. */
export function auditEntryIn(note: string): AuditEntry | undefined {
  try {
    const { at, action, keys, by, reason } = JSON.parse(note) as Record<string, unknown>;
    const isEntry =
      isTime(at) && ACTIONS.includes(action) && isTexts(keys) && isTexts([by, reason]);
    if (!isEntry) return undefined;
    const known = { action, keys, by, reason } as Omit<AuditEntry, 'at'>;
    return { at: new Date(at as number), ...known };
  } catch {
    return undefined;
  }
}

/** What a `Date` can have. */
const isTime = (value: unknown): boolean => typeof value === 'number' && Math.abs(value) <= 8.64e15;

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
