import { createHash } from 'node:crypto';
import { compileLua } from '../lua/compile.js';
import { toBytes } from './bytes.js';
import type { Target } from './commands/command.js';
import { integerOf } from './commands/parse.js';
import { ModelError, NO_INTEGER, NO_SCRIPT, OK, UnknownCommand, type RawReply } from './replies.js';
import { ScriptRun, type KnownScript } from './script-run.js';

/** Of all servers: compiled once. By the text as it was sent. */
const compiled = new Map<string, KnownScript>();

function scriptOf(text: string): KnownScript {
  let script = compiled.get(text);
  if (script === undefined) {
    const sha = createHash('sha1').update(text).digest('hex');
    script = { sha, compiled: compileLua(toBytes(text)) };
    compiled.set(text, script);
  }
  return script;
}

/** The scripts that a server knows, until it restarts. */
export class Scripts {
  readonly #known = new Map<string, KnownScript>();

  /** @param text of the script, as it was sent */
  eval(target: Target, text: string, argv: readonly string[]): RawReply {
    const script = scriptOf(text);
    this.#known.set(script.sha, script);
    return run(target, script, argv);
  }

  evalsha(target: Target, argv: readonly string[]): RawReply {
    const sha = argv[1] as string;
    const script = this.#known.get(sha) ?? this.#known.get(sha.toLowerCase());
    return run(target, script, argv);
  }

  /** SCRIPT LOAD, EXISTS and FLUSH. */
  manage([, what = '', ...args]: readonly string[]): RawReply {
    switch (what.toUpperCase()) {
      case 'LOAD': {
        const script = scriptOf(args[0] as string);
        this.#known.set(script.sha, script);
        return script.sha;
      }
      case 'EXISTS':
        return args.map((sha) => (this.#known.has(sha.toLowerCase()) ? 1 : 0));
      case 'FLUSH':
        this.forget();
        return OK;
      default:
        throw new UnknownCommand(`SCRIPT ${what}`);
    }
  }

  forget(): void {
    this.#known.clear();
  }
}

function run(target: Target, script: KnownScript | undefined, argv: readonly string[]): RawReply {
  const count = integerOf(argv[2] as string);
  if (count === undefined) return NO_INTEGER;
  if (count > argv.length - 3)
    return new ModelError("ERR Number of keys can't be greater than number of args");
  if (count < 0) return new ModelError("ERR Number of keys can't be negative");
  return script === undefined ? NO_SCRIPT : new ScriptRun(target).run(script, argv, count);
}
