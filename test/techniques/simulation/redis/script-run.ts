import type { CompiledScript, Host } from '../lua/compile.js';
import { exact } from '../lua/numbers.js';
import { LuaError, LuaTable, tableWith, textOf, type LuaValue } from '../lua/values.js';
import type { Target } from './commands/command.js';
import { commandNamed, fits, keysOf } from './commands/index.js';
import {
  ModelError,
  OUT_OF_MEMORY,
  READ_ONLY,
  Status,
  UndeclaredKey,
  UnknownCommand,
  type RawReply,
} from './replies.js';

/** A script that a server knows. */
export interface KnownScript {
  readonly sha: string;
  readonly compiled: CompiledScript;
}

const NO_ARGUMENT = new ModelError(
  'ERR Lua redis lib command arguments must be strings or integers',
);
const NOT_THESE = new ModelError('ERR Wrong number of args calling Redis command from script');

/** One run of a script: what it calls, and what becomes of the answers. */
export class ScriptRun implements Host {
  readonly #target: Target;
  #declared: readonly string[] = [];
  /** A full server lets a script go on that has called anything that writes, whether that wrote or not. */
  #hasWritten = false;

  constructor(target: Target) {
    this.#target = target;
  }

  /** @param argv of EVAL or EVALSHA, of which the first arguments are keys */
  run({ sha, compiled }: KnownScript, argv: readonly string[], keyCount: number): RawReply {
    this.#declared = argv.slice(3, 3 + keyCount);
    const keys = new LuaTable([...this.#declared]);
    const args = new LuaTable(argv.slice(3 + keyCount));
    try {
      const values = compiled(this, keys, args);
      return replyOf(values instanceof Array ? values[0] : values);
    } catch (error) {
      if (error instanceof LuaError) return new ModelError(uncaught(error.value, sha));
      throw error;
    }
  }

  call(args: LuaValue[], line: number): LuaValue {
    const reply = this.#reply(args);
    if (!(reply instanceof ModelError)) return luaOf(reply);
    const error = tableWith('err', reply.message);
    error.set('line', line);
    throw new LuaError(error);
  }

  pcall(args: LuaValue[]): LuaValue {
    const reply = this.#reply(args);
    return reply instanceof ModelError ? tableWith('err', reply.message) : luaOf(reply);
  }

  #reply(args: LuaValue[]): RawReply {
    for (let index = 0; index < args.length; index += 1) {
      const argument = args[index];
      if (typeof argument === 'number') args[index] = exact(argument);
      else if (typeof argument !== 'string') return NO_ARGUMENT;
    }
    const argv = args as string[];
    const command = commandNamed(argv[0] as string);
    if (command?.isForScripts !== true)
      throw new UnknownCommand(`the model knows no ${String(argv[0])} for scripts`);
    if (!fits(command, argv)) return NOT_THESE;
    const undeclared = keysOf(argv).find((key) => !this.#declared.includes(key));
    if (undeclared !== undefined && this.#target.facts.isStrict)
      throw new UndeclaredKey(`${argv.join(' ')}: ${undeclared} is not in KEYS`);
    const { kind, run } = command;
    if (kind !== 'reads') {
      const { role, memory } = this.#target.facts;
      if (role === 'slave') return READ_ONLY;
      if (memory === 'full' && kind === 'writes and needs memory' && !this.#hasWritten)
        return OUT_OF_MEMORY;
      this.#hasWritten = true;
    }
    return run(this.#target, argv);
  }
}

/** What a script sees of an answer. */
function luaOf(reply: RawReply): LuaValue {
  if (reply === null) return false;
  if (typeof reply !== 'object') return reply;
  if (reply instanceof Status) return tableWith('ok', reply.text);
  if (reply instanceof ModelError) return tableWith('err', reply.message);
  return new LuaTable(reply.map(luaOf));
}

/** What a client gets of what a script returns. */
function replyOf(value: LuaValue): RawReply {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      // What is no integer of 64 bits becomes the least of them, on x86.
      return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2 ** 63);
    case 'boolean':
      return value ? 1 : null;
    default:
      return value instanceof LuaTable ? tableReply(value) : null;
  }
}

function tableReply(table: LuaTable): RawReply {
  const error = table.get('err');
  if (typeof error === 'string') return new ModelError(error);
  const state = table.get('ok');
  if (typeof state === 'string') return new Status(state);
  const replies: RawReply[] = [];
  for (let index = 1; ; index += 1) {
    const item = table.get(index);
    if (item === undefined) return replies;
    replies.push(replyOf(item));
  }
}

/** Redis adds where it was raised; of what Lua raised by itself, the model does not know the line. */
function uncaught(value: LuaValue, sha: string): string {
  if (!(value instanceof LuaTable)) return `ERR user_script: ${textOf(value) ?? ''} script: ${sha}`;
  const line = textOf(value.get('line')) ?? '';
  return `${textOf(value.get('err')) ?? ''} script: ${sha}, on @user_script:${line}.`;
}
