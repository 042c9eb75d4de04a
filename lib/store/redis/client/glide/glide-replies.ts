import { CLOSED, messageOf, replyError } from '../reply-errors.js';

/** The codes that GLIDE replaces by names of its own. */
const CODES: Readonly<Record<string, string>> = {
  ResponseError: 'ERR',
  ExecAbortError: 'EXECABORT',
  BusyLoadingError: 'LOADING',
  NoScriptError: 'NOSCRIPT',
  Moved: 'MOVED',
  Ask: 'ASK',
  TryAgain: 'TRYAGAIN',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  MasterDown: 'MASTERDOWN',
  ReadOnly: 'READONLY',
  NotBusy: 'NOTBUSY',
  PermissionDenied: 'NOPERM',
};

/** Error replies whose code GLIDE knows, and those that begin with any other code. */
const KNOWN = /^An error was signalled by the server: ?- (\w+)(?:: (.*))?$/s;
const OTHER = /^([A-Z][A-Z0-9_]*): (.*)$/s;

/** The reply of a server, as the server wrote it; `undefined` for errors of another kind. */
export function serverReply(message: string): string | undefined {
  const [, name = '', text = ''] = KNOWN.exec(message) ?? [];
  const code = CODES[name];
  if (code !== undefined) return `${code} ${text}`.trimEnd();
  const [, otherCode, otherText] = OTHER.exec(message) ?? [];
  return otherCode === undefined ? undefined : `${otherCode} ${otherText ?? ''}`;
}

/** A reply that GLIDE cannot make of it what it makes of others to that command. */
const unreadable = (message: string): string | undefined =>
  message.startsWith("Response couldn't be converted") ? message : undefined;

/** What a request is rejected with. */
export function requestError(error: unknown): Error {
  const message = messageOf(error);
  const reply = serverReply(message) ?? unreadable(message);
  if (reply !== undefined) return replyError(reply);
  return new Error(isBroken(error) ? CLOSED : message, { cause: error });
}

/** The connection or the client is gone, by the names that GLIDE gives to its errors. */
export const isBroken = (error: unknown): boolean =>
  error instanceof Error &&
  (error.name === 'ConnectionError' || error.name === 'ClosingError' || isGone(error.message));

/** A bundler may rename classes. The second of them is what GLIDE says of a Cluster. */
const isGone = (message: string): boolean =>
  /^(Received connection error|Connection in recovery)/.test(message);

/** What stands around the reason why a client could not be created, for one node of those that were tried. */
const OF_ADDRESS = /Received error for address `[^`]*`: ([^\n]*)/;

/** Why a client could not be created. */
export function connectError(error: unknown): string {
  const message = messageOf(error);
  const reason = (OF_ADDRESS.exec(message)?.[1] ?? message).trim();
  // GLIDE drops the reply to AUTH.
  return reason.startsWith('Password authentication failed')
    ? 'WRONGPASS invalid username-password pair, or the user is disabled'
    : (serverReply(reason) ?? reason);
}

/** GLIDE makes maps of the replies to some commands. */
interface Entry {
  readonly key: unknown;
  readonly value: unknown;
}

const isEntry = (value: unknown): value is Entry =>
  typeof value === 'object' && value !== null && 'key' in value && 'value' in value;

/** A reply in the form of RESP2: lists for maps, and 1 and 0 for `true` and `false`. */
export function plainReply(reply: unknown): unknown {
  if (typeof reply === 'boolean') return reply ? 1 : 0;
  if (reply instanceof Set) return plainReply([...reply]);
  if (!Array.isArray(reply)) return reply;
  return reply.flatMap((each: unknown) => {
    if (!isEntry(each)) return [plainReply(each)];
    const { key, value } = each;
    // Only an entry of a stream has a list: the pairs of its fields.
    return Array.isArray(value) ? [[key, value.flat()]] : [key, plainReply(value)];
  });
}
