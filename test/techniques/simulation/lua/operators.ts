import { decimal, parseLuaNumber } from './numbers.js';
import {
  LuaError,
  LuaTable,
  raise,
  textOf,
  typeName,
  UnsupportedLua,
  type LuaFunction,
  type LuaValue,
} from './values.js';

/** What the operators of Lua do, as compiled code calls them. */

type Values = LuaValue | readonly LuaValue[];

/** No value at all. */
export const NONE: readonly LuaValue[] = Object.freeze([]);

/** The first of several values. */
export const first = (values: Values): LuaValue => (values instanceof Array ? values[0] : values);

export const many = (values: Values): readonly LuaValue[] =>
  values instanceof Array ? values : [values];

export const truthy = (value: LuaValue): boolean => value !== undefined && value !== false;

export const number = (value: LuaValue): number =>
  typeof value === 'number' ? value : coerced(value);

function coerced(value: LuaValue): number {
  const result = typeof value === 'string' ? parseLuaNumber(value) : undefined;
  return result ?? raise(`attempt to perform arithmetic on a ${typeName(value)} value`);
}

export const modulo = (dividend: number, divisor: number): number =>
  dividend - Math.floor(dividend / divisor) * divisor;

export const concatenated = (value: LuaValue): string => {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return decimal(value);
  return raise(`attempt to concatenate a ${typeName(value)} value`);
};

export const isLess = (left: LuaValue, right: LuaValue): boolean =>
  typeof left === 'number' && typeof right === 'number' ? left < right : incomparable(left, right);

export const isAtMost = (left: LuaValue, right: LuaValue): boolean =>
  typeof left === 'number' && typeof right === 'number' ? left <= right : incomparable(left, right);

// With the operands in their order: that in which they are evaluated.
export const isMore = (left: LuaValue, right: LuaValue): boolean =>
  typeof left === 'number' && typeof right === 'number' ? left > right : incomparable(right, left);

export const isAtLeast = (left: LuaValue, right: LuaValue): boolean =>
  typeof left === 'number' && typeof right === 'number' ? left >= right : incomparable(right, left);

function incomparable(left: LuaValue, right: LuaValue): never {
  const [one, other] = [typeName(left), typeName(right)];
  if (one === 'string' && other === 'string')
    throw new UnsupportedLua('comparing texts: their order is that of the locale');
  return raise(
    one === other
      ? `attempt to compare two ${one} values`
      : `attempt to compare ${one} with ${other}`,
  );
}

export const at = (table: LuaValue, key: LuaValue): LuaValue => {
  if (table instanceof LuaTable) return table.get(key);
  if (typeof table === 'string') throw new UnsupportedLua('a field of a text');
  return raise(`attempt to index a ${typeName(table)} value`);
};

export const put = (table: LuaValue, key: LuaValue, value: LuaValue): void => {
  if (!(table instanceof LuaTable)) raise(`attempt to index a ${typeName(table)} value`);
  table.set(key, value);
};

export const lengthOf = (value: LuaValue): number => {
  if (typeof value === 'string') return value.length;
  if (value instanceof LuaTable) return value.length;
  return raise(`attempt to get length of a ${typeName(value)} value`);
};

export const callable = (value: LuaValue): LuaFunction =>
  typeof value === 'function' ? value : raise(`attempt to call a ${typeName(value)} value`);

export const table = (items: LuaValue[]): LuaTable => new LuaTable(items);

export function tableOf(items: LuaValue[], entries: readonly LuaValue[]): LuaTable {
  const result = new LuaTable(items);
  for (let index = 0; index < entries.length; index += 2)
    result.set(entries[index], entries[index + 1]);
  return result;
}

/** `pcall`. As Redis has it since 7.0, of a table with an error only that is given back. */
export function protect(called: LuaValue, args: LuaValue[]): readonly LuaValue[] {
  try {
    const values = callable(called)(...args);
    return values instanceof Array ? [true, ...values] : [true, values];
  } catch (error) {
    if (!(error instanceof LuaError)) throw error;
    const { value } = error;
    const text = value instanceof LuaTable ? textOf(value.get('err')) : undefined;
    return [false, text ?? value];
  }
}
