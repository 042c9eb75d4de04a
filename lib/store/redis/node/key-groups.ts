import calculateSlot from 'cluster-key-slot';
import { keyNames, type KeyNames } from '../scripts/key-names.js';

/** One script blocks the server for as long as it runs. */
const KEYS_PER_SCRIPT = 500;

/** What one script can take at once: everything, or on a Cluster the keys of one slot. */
export interface Group {
  /** 0 where there are none. */
  readonly slot: number;
  readonly names: readonly [KeyNames, ...KeyNames[]];
}

/** Where keys are: under which names, and on a Cluster in which slot. */
export class KeySlots {
  readonly #namesOf: (key: string) => KeyNames;
  readonly #isCluster: boolean;

  constructor(prefix: string, kind: 'single' | 'cluster') {
    this.#namesOf = keyNames(prefix);
    this.#isCluster = kind === 'cluster';
  }

  names(key: string): KeyNames {
    return this.#namesOf(key);
  }

  slot(key: string): number {
    return this.#isCluster ? calculateSlot(this.names(key).main) : 0;
  }

  /** In the order of the keys. */
  groups(keys: readonly string[]): readonly Group[] {
    if (!this.#isCluster) {
      const names = keys.map(this.#namesOf) as [KeyNames, ...KeyNames[]]; // no lease is without keys
      return [{ slot: 0, names }];
    }
    const groups = new Map<number, [KeyNames, ...KeyNames[]]>();
    for (const key of keys) {
      const slot = this.slot(key);
      const names = groups.get(slot);
      if (names === undefined) groups.set(slot, [this.names(key)]);
      else names.push(this.names(key));
    }
    return [...groups].map(([slot, names]) => ({ slot, names }));
  }
}

/** Groups of one slot each, and no longer than one script should be. */
export function batches<T extends { readonly slot: number }>(
  entries: readonly T[],
): readonly (readonly [T, ...T[]])[] {
  const result: [T, ...T[]][] = [];
  const open = new Map<number, [T, ...T[]]>();
  for (const entry of entries) {
    const batch = open.get(entry.slot);
    if (batch !== undefined && batch.length < KEYS_PER_SCRIPT) {
      batch.push(entry);
      continue;
    }
    const next: [T] = [entry];
    open.set(entry.slot, next);
    result.push(next);
  }
  return result;
}
