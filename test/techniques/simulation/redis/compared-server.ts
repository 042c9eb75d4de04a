import { ModelError, type ChannelKind } from './model.js';
import { SCRIPTS, type Step } from './steps.js';

/** What a step showed of a server: the answer, and the keys afterwards. */
export interface Outcome {
  readonly reply: unknown;
  readonly keys: readonly string[];
}

/** Of each kind in their order. */
export type Messages = Readonly<Record<ChannelKind, string[]>>;

/** A server that steps happen to. */
export interface ComparedServer {
  /** Plays steps on a server without keys and listeners, which knows all scripts. */
  play(steps: readonly Step[]): Promise<readonly Outcome[]>;
  /** What those who listened have been told meanwhile. */
  messages(): Promise<Messages>;
}

/** Loads all scripts. */
export const LOADS = Object.values(SCRIPTS).map(({ lua }) => ['SCRIPT', 'LOAD', lua] as const);

/** One key as both servers show it. */
export const shownKey = (
  key: string,
  type: string,
  leftMs: number,
  value: readonly string[],
): string => `${key} ${type} ${leftMs} ${JSON.stringify(value)}`;

/** Errors as their texts, also within lists. */
export function shownReply(reply: unknown): unknown {
  if (reply instanceof ModelError || reply instanceof Error) return comparable(reply.message);
  return Array.isArray(reply) ? reply.map(shownReply) : reply;
}

/** Where a script of ours goes wrong by itself, Lua tells of lines and names, which the model does not know. */
function comparable(message: string): string {
  // What a script has caught and given back has no code.
  const byLua = /^(ERR )?user_script:(\d+:)? ?/;
  if (!byLua.test(message)) return message;
  return message
    .replace(byLua, '')
    .replace(/, on @user_script:\d+\.$/, '')
    .replace(/ (?:local|upvalue|field|global) '[^']*' \((.*?)\)/, ' $1')
    .replace(/bad argument #\d+ to/, 'bad argument to');
}
