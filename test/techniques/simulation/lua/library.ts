import { decimal, parseLuaNumber, rounded } from './numbers.js';
import { number } from './operators.js';
import { patternOf, type Pattern } from './patterns.js';
import { LuaTable, raise, tableWith, textOf, typeName, type LuaValue } from './values.js';

/** The functions of Lua and Redis that compiled code calls, as far as they are known. */

export const type = (value: LuaValue): string => typeName(value);

export function tonumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? parseLuaNumber(value) : undefined;
}

export function tostring(value: LuaValue): string {
  if (value === undefined) return 'nil';
  return typeof value === 'boolean' ? String(value) : text(value, 'tostring');
}

export const errorReply = (message: LuaValue): LuaTable =>
  tableWith('err', text(message, 'error_reply'));

export const statusReply = (message: LuaValue): LuaTable =>
  tableWith('ok', text(message, 'status_reply'));

export function max(value: LuaValue, ...others: LuaValue[]): number {
  let result = argument(value, 'max');
  for (const other of others) {
    const candidate = argument(other, 'max');
    if (candidate > result) result = candidate;
  }
  return result;
}

export function min(value: LuaValue, ...others: LuaValue[]): number {
  let result = argument(value, 'min');
  for (const other of others) {
    const candidate = argument(other, 'min');
    if (candidate < result) result = candidate;
  }
  return result;
}

export const ceil = (value: LuaValue): number => Math.ceil(argument(value, 'ceil'));
export const floor = (value: LuaValue): number => Math.floor(argument(value, 'floor'));

export function concat(table: LuaValue, separator?: LuaValue): string {
  if (!(table instanceof LuaTable)) return bad('concat', 'table', table);
  const between = separator === undefined ? '' : text(separator, 'concat');
  let result = '';
  for (let index = 1; index <= table.length; index += 1) {
    const item = textOf(table.get(index));
    if (item === undefined)
      raise(
        `invalid value (${typeName(table.get(index))}) at index ${index} in table for 'concat'`,
      );
    result += index === 1 ? item : between + item;
  }
  return result;
}

/** All values of a list. */
export function unpack(table: LuaValue): readonly LuaValue[] {
  if (!(table instanceof LuaTable)) return bad('unpack', 'table', table);
  return Array.from({ length: table.length }, (_, index) => table.get(index + 1));
}

export function sub(value: LuaValue, from: LuaValue, to: LuaValue = -1): string {
  const string = text(value, 'sub');
  const start = position(argument(from, 'sub'), string.length);
  const end = position(argument(to, 'sub'), string.length);
  return string.slice(Math.max(start, 1) - 1, Math.max(end, 0));
}

/** `string.find` with a text and not a pattern. */
export function findPlain(value: LuaValue, wanted: LuaValue, from: LuaValue): readonly LuaValue[] {
  const string = text(value, 'find');
  const searched = text(wanted, 'find');
  const index = string.indexOf(searched, begin(string, from, 'find'));
  return index < 0 ? [undefined] : [index + 1, index + searched.length];
}

export function find(value: LuaValue, pattern: Pattern, from: LuaValue): readonly LuaValue[] {
  const found = search(text(value, 'find'), pattern, from);
  if (found === null) return [undefined];
  return [found.index + 1, found.index + found[0].length, ...found.slice(1)];
}

/** With no capture or one. */
export function matchOne(value: LuaValue, pattern: Pattern, from: LuaValue): string | undefined {
  const found = search(text(value, 'match'), pattern, from);
  return found === null ? undefined : found[pattern.captures];
}

export function match(value: LuaValue, pattern: Pattern, from: LuaValue): readonly LuaValue[] {
  const found = search(text(value, 'match'), pattern, from);
  if (found === null) return [undefined];
  return found.length === 1 ? [found[0]] : found.slice(1);
}

/** All that `gmatch` goes over. */
export function matches(value: LuaValue, { regex }: Pattern): readonly (readonly LuaValue[])[] {
  return Array.from(text(value, 'gmatch').matchAll(regex), (found) =>
    found.length === 1 ? [found[0]] : found.slice(1),
  );
}

export const pattern = (value: LuaValue): Pattern => patternOf(text(value, 'match'));

/** `%d`, `%s` and `%.0f` of `string.format`. */
export const integer = (value: LuaValue): string => rounded(Math.trunc(argument(value, 'format')));
export const fixed = (value: LuaValue): string => rounded(argument(value, 'format'));
export const formatted = (value: LuaValue): string => text(value, 'format');

export function insert(table: LuaValue, value: LuaValue): readonly LuaValue[] {
  if (!(table instanceof LuaTable)) return bad('insert', 'table', table);
  table.set(table.length + 1, value);
  return [];
}

function search(value: string, { regex }: Pattern, from: LuaValue): RegExpExecArray | null {
  regex.lastIndex = from === undefined ? 0 : begin(value, from, 'match');
  return regex.exec(value);
}

function begin(value: string, from: LuaValue, name: string): number {
  const start = position(from === undefined ? 1 : argument(from, name), value.length);
  return Math.min(Math.max(start - 1, 0), value.length);
}

/** Counted from the end where it is negative. */
const position = (index: number, length: number): number =>
  index < 0 ? Math.max(length + Math.trunc(index) + 1, 0) : Math.trunc(index);

function argument(value: LuaValue, name: string): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'string' && parseLuaNumber(value) !== undefined) return number(value);
  return bad(name, 'number', value);
}

function text(value: LuaValue, name: string): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? decimal(value) : bad(name, 'string', value);
}

function bad(name: string, wanted: string, value: LuaValue): never {
  return raise(`bad argument to '${name}' (${wanted} expected, got ${typeName(value)})`);
}
