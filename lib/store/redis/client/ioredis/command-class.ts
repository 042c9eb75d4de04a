import type { Cluster, Command, Redis } from 'ioredis';
import { type ScriptCall, partsOf } from '../../scripts/script.js';

type CommandClass = typeof Command;

/**
 * The class of the commands that a client sends: that of its own package and copy. Neither ioredis nor iovalkey gives it to those who have
 * a client only, so this stands for the method that would send one.
 */
export function commandClassOf(client: Redis | Cluster): CommandClass {
  let made: Command | undefined;
  const sendCommand = (command: Command): void => {
    made = command;
  };
  const catcher = Object.create(client, { sendCommand: { value: sendCommand } }) as Redis;
  void catcher.call('ping');
  if (made === undefined) throw new Error('the client has made no command');
  return made.constructor as CommandClass;
}

/** As the methods of ioredis ask for replies. */
const AS_TEXT = { replyEncoding: 'utf8' } as const;

/** A call with more arguments would block the server for seconds. No call of the library has a tenth of them. */
const MOST_ARGUMENTS = 65_536;

/** What stands before an argument of that many bytes. */
const headOf = (bytes: number): string => `\r\n$${String(bytes)}\r\n`;

/** For arguments of usual length, made once. */
const HEADS = Array.from({ length: 128 }, (_, bytes) => headOf(bytes));

type EvalShaClass = new (sha: string, call: ScriptCall) => Command & { toWritable(): string };

const known = new WeakMap<CommandClass, EvalShaClass>();

/**
 * EVALSHA as ioredis sends it, with less work: the method of that name copies all arguments three times, and asks for
 * the number of bytes of each.
 */
export function evalShaClass(Base: CommandClass): EvalShaClass {
  const existing = known.get(Base);
  if (existing !== undefined) return existing;
  class EvalSha extends Base {
    /** @throws RangeError for too many arguments */
    constructor(sha: string, call: ScriptCall) {
      if (call.length > MOST_ARGUMENTS)
        throw new RangeError(`a script has at most ${String(MOST_ARGUMENTS)} arguments`);
      super('evalsha', [], AS_TEXT);
      this.args = partsOf(sha, call);
    }

    override toWritable(): string {
      const text = this.#textWith((arg) => arg.length);
      // Nearly always each character is one byte.
      return Buffer.byteLength(text) === text.length
        ? text
        : this.#textWith((arg) => Buffer.byteLength(arg));
    }

    #textWith(bytesOf: (arg: string) => number): string {
      let text = `*${String(this.args.length + 1)}\r\n$7\r\nevalsha`;
      for (const part of this.args) {
        const arg = typeof part === 'string' ? part : String(part);
        const bytes = bytesOf(arg);
        text += (HEADS[bytes] ?? headOf(bytes)) + arg;
      }
      return `${text}\r\n`;
    }
  }
  known.set(Base, EvalSha);
  return EvalSha;
}
