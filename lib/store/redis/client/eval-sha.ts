import ioredis from './ioredis.cjs';
import { partsOf, type ScriptCall } from '../scripts/script.js';

/** As the methods of ioredis ask for replies. */
const AS_TEXT = { replyEncoding: 'utf8' } as const;

/** A call with more arguments would block the server for seconds. No call of the library has a tenth of them. */
const MOST_ARGUMENTS = 65_536;

/** What stands before an argument of that many bytes. */
const headOf = (bytes: number): string => `\r\n$${String(bytes)}\r\n`;

/** For arguments of usual length, made once. */
const HEADS = Array.from({ length: 128 }, (_, bytes) => headOf(bytes));

/**
 * EVALSHA as ioredis sends it, with less work: the method of that name copies all arguments three times, and asks for
 * the number of bytes of each.
 */
export class EvalSha extends ioredis.Command {
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
