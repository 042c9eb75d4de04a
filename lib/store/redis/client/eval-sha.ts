import ioredis from './ioredis.cjs';
import type { ScriptCall } from '../scripts/script.js';

/** As the methods of ioredis ask for replies. */
const AS_TEXT = { replyEncoding: 'utf8' } as const;

/**
 * EVALSHA as ioredis sends it, with less garbage: the method of that name copies all arguments three times before it
 * writes them.
 */
export class EvalSha extends ioredis.Command {
  constructor(sha: string, call: ScriptCall) {
    super('evalsha', [], AS_TEXT);
    this.args = [sha, ...call];
  }

  override toWritable(): string {
    let text = `*${String(this.args.length + 1)}\r\n$7\r\nevalsha`;
    for (const part of this.args) {
      const arg = String(part);
      text += `\r\n$${String(Buffer.byteLength(arg))}\r\n${arg}`;
    }
    return `${text}\r\n`;
  }
}
