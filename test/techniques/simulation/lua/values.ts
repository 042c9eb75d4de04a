import { decimal } from './numbers.js';

/** A value of Lua. Strings hold one byte a character; several values at once are an array. */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction;
export type LuaFunction = (...args: LuaValue[]) => LuaValue | readonly LuaValue[];

/** What Lua code raised: `pcall` sees it. No `Error`, because recording a stack takes longer than most scripts. */
export class LuaError {
  readonly value: LuaValue;

  constructor(value: LuaValue) {
    this.value = value;
  }
}

/** What the compiler or its runtime does not do: no `pcall` sees it. */
export class UnsupportedLua extends Error {
  override readonly name = 'UnsupportedLua';
}

export function raise(message: string): never {
  throw new LuaError(message);
}

/** A table: what is at 1 to n in an array, the rest in a map. */
export class LuaTable {
  readonly items: LuaValue[];
  #rest: Map<LuaValue, LuaValue> | undefined;
  /** How many of the items are nil: what the length is then depends on how Lua came to the table. */
  #holes = 0;
  /** How many numbers from 1 are in the map. */
  #apart = 0;

  constructor(items: LuaValue[] = []) {
    while (items.length > 0 && items[items.length - 1] === undefined) items.pop();
    this.items = items;
    for (const item of items) if (item === undefined) this.#holes += 1;
  }

  get(key: LuaValue): LuaValue {
    if (typeof key === 'number') {
      const item = this.items[key - 1];
      if (item !== undefined) return item;
    }
    return this.#rest?.get(key);
  }

  set(key: LuaValue, value: LuaValue): void {
    const { items } = this;
    if (typeof key === 'number') {
      const { length } = items;
      if (key >= 1 && key <= length && Number.isInteger(key)) {
        this.#replace(key - 1, value);
        return;
      }
      if (key === length + 1) {
        if (value === undefined) return;
        items.push(value);
        if (this.#apart > 0) this.#gather();
        return;
      }
      if (Number.isNaN(key)) raise('table index is NaN');
    }
    if (key === undefined) raise('table index is nil');
    this.#setApart(key, value);
  }

  /** @throws UnsupportedLua where Lua says one of several lengths */
  get length(): number {
    if (this.#holes > 0 || this.#apart > 0)
      throw new UnsupportedLua('the length of a table with holes');
    return this.items.length;
  }

  #replace(index: number, value: LuaValue): void {
    const { items } = this;
    if (items[index] === undefined) this.#holes -= 1;
    if (value === undefined) this.#holes += 1;
    items[index] = value;
    while (items.length > 0 && items[items.length - 1] === undefined) {
      items.pop();
      this.#holes -= 1;
    }
  }

  #setApart(key: LuaValue, value: LuaValue): void {
    const rest = (this.#rest ??= new Map<LuaValue, LuaValue>());
    const counts = typeof key === 'number' && key >= 1 && Number.isInteger(key);
    if (value === undefined) {
      if (rest.delete(key) && counts) this.#apart -= 1;
      return;
    }
    if (counts && !rest.has(key)) this.#apart += 1;
    rest.set(key, value);
  }

  /** What follows the items comes to them. */
  #gather(): void {
    const { items } = this;
    for (;;) {
      const key = items.length + 1;
      const value = this.#rest?.get(key);
      if (value === undefined) return;
      items.push(value);
      this.#setApart(key, undefined);
    }
  }
}

/** A table with one field, as Redis makes them for errors and for states. */
export function tableWith(key: string, value: LuaValue): LuaTable {
  const table = new LuaTable();
  table.set(key, value);
  return table;
}

export function typeName(value: LuaValue): string {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}

/** What is text, or a number, which becomes one. */
export function textOf(value: LuaValue): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? decimal(value) : undefined;
}
