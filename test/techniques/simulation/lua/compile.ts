import luaparse from 'luaparse';
import * as library from './library.js';
import * as operators from './operators.js';
import { Scope, Unit } from './scope.js';
import { functionBody } from './statements.js';
import type { LuaTable, LuaValue } from './values.js';

/** Whom a script calls. */
export interface Host {
  /** `redis.call`: raises what is an error. Numbers and texts are arguments, nothing else is. */
  call(args: LuaValue[], line: number): LuaValue;
  /** `redis.pcall`: gives an error back as a table. */
  pcall(args: LuaValue[], line: number): LuaValue;
}

/** A script as a function. What it raises is a `LuaError`. */
export type CompiledScript = (
  host: Host,
  keys: LuaTable,
  args: LuaTable,
) => LuaValue | readonly LuaValue[];

const known = new Map<string, CompiledScript>();

/**
 * Compiles a script of Lua 5.1 to JavaScript: as much of the language as the scripts of this project use. It is compiled once.
 *
 * @param text one byte a character
 * @throws UnsupportedLua for everything else, and names it
 */
export function compileLua(text: string): CompiledScript {
  let script = known.get(text);
  if (script === undefined) {
    script = compile(text);
    known.set(text, script);
  }
  return script;
}

/** @throws SyntaxError for a text that is no Lua */
export const parseLua = (text: string) =>
  luaparse.parse(text, {
    luaVersion: '5.1',
    comments: false,
    locations: true,
    ranges: true,
    encodingMode: 'pseudo-latin1',
  });

function compile(text: string): CompiledScript {
  const { body } = parseLua(text);
  const unit = new Unit(text);
  const code = functionBody(body, new Scope(unit));
  const runtime = { ...operators, ...library };
  const constants = unit.constants.map((_, index) => `constant$${index}`);
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- this is what a compiler is for
  const make = new Function(
    'runtime',
    'constants',
    `'use strict';
const { ${Object.keys(runtime).join(', ')} } = runtime;
const [${constants.join(', ')}] = constants;
return function script(host, KEYS, ARGV) {
${code}
};`,
  ) as (runtime: object, constants: readonly unknown[]) => CompiledScript;
  return make(runtime, unit.constants);
}
