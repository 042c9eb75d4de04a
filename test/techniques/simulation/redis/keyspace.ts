import { SortedSet } from './sorted-set.js';

/** A string, a hash or a sorted set. */
export type Value = string | Map<string, string> | SortedSet;

/** What is kept under a key. */
export interface Entry {
  value: Value;
  /** Redis' time in ms at whose end it is gone; `Infinity`: never. */
  expiresAtMs: number;
}

/** What one command did to keys: their new entries, or `undefined` for those that are gone. Nothing changes it afterwards. */
export type Changes = readonly (readonly [key: string, entry: Readonly<Entry> | undefined])[];

/** The keys of one server. What has expired is removed when it is looked at. */
export class Keyspace {
  /** Stands still while a command or a script runs. */
  nowMs = 0;
  readonly #entries = new Map<string, Entry>();
  /** What was changed, where somebody wants to know that. */
  readonly #changed: Set<string> | undefined;
  #hasChanged = false;

  /** @param records whether changes can be taken */
  constructor(records: 'changes' | 'nothing') {
    this.#changed = records === 'changes' ? new Set() : undefined;
  }

  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.nowMs <= entry.expiresAtMs) return entry;
    this.delete(key);
    return undefined;
  }

  /** Redis' time in ms at whose end it is gone; `Infinity`: never, `undefined`: it does not exist. Changes nothing. */
  expiresAtMs(key: string): number | undefined {
    return this.#entries.get(key)?.expiresAtMs;
  }

  set(key: string, value: Value, expiresAtMs = Infinity): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) this.#entries.set(key, { value, expiresAtMs });
    else {
      entry.value = value;
      entry.expiresAtMs = expiresAtMs;
    }
    this.changed(key);
  }

  delete(key: string): void {
    if (this.#entries.delete(key)) this.changed(key);
  }

  /** To be called for every change of a value, or of when it expires. */
  changed(key: string): void {
    this.#hasChanged = true;
    this.#changed?.add(key);
  }

  clear(): void {
    for (const key of this.#entries.keys()) this.changed(key);
    this.#entries.clear();
  }

  /** Whether anything was changed since the changes were taken. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  takeChanges(): Changes {
    this.#hasChanged = false;
    if (this.#changed === undefined) return [];
    const changes = Array.from(this.#changed, (key) => {
      const entry = this.#entries.get(key);
      return [key, entry && copyOf(entry)] as const;
    });
    this.#changed.clear();
    return changes;
  }

  apply(changes: Changes): void {
    for (const [key, entry] of changes) {
      if (entry === undefined) this.#entries.delete(key);
      else this.#entries.set(key, copyOf(entry));
    }
  }

  /** What has not expired, in the order of the keys. */
  visible(): readonly (readonly [string, Readonly<Entry>])[] {
    return [...this.#entries]
      .filter(([, { expiresAtMs }]) => this.nowMs <= expiresAtMs)
      .sort(([left], [right]) => (left < right ? -1 : 1));
  }

  /** Takes over the keys of another one. */
  copyFrom(other: Keyspace): void {
    this.#entries.clear();
    for (const [key, entry] of other.#entries) this.#entries.set(key, copyOf(entry));
  }
}

function copyOf({ value, expiresAtMs }: Readonly<Entry>): Entry {
  if (typeof value === 'string') return { value, expiresAtMs };
  return { value: value instanceof SortedSet ? value.copy() : new Map(value), expiresAtMs };
}
