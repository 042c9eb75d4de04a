/** Answers of a server that is busy with something that passes (Redis' own error codes; before Redis 7 a script's come behind a dash). */
const PASSING =
  /(^|: -)(LOADING|TRYAGAIN|MOVED|ASK|CLUSTERDOWN|READONLY|MASTERDOWN|NOREPLICAS|BUSY|MISCONF|OOM)\b/;

/** Replies of a server that did not begin with the command. */
const NOT_BEGUN = /^(LOADING|TRYAGAIN|MOVED|ASK|CLUSTERDOWN|MASTERDOWN|BUSY)\b/;

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** An answer that is an error. */
export const replyError = (message: string): Error =>
  Object.assign(new Error(message), { name: 'ReplyError' });

/** The classes that clients have for such an answer. An adapter adds its own: a minifier may rename a class, and its errors with it. */
export const REPLY_ERRORS: (typeof Error)[] = [];

/**
 * The server replied with an error, in contrast to a failed connection. The name counts if the client comes from another
 * copy of its package.
 */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error &&
  (error.name === 'ReplyError' || REPLY_ERRORS.some((each) => error instanceof each));

/** The server did not begin with the command. Another one would have had the same reply. */
export const isNotBegun = (message: string): boolean => NOT_BEGUN.test(message);

/** The server said no, and will for a moment only. */
export const isPassing = (error: unknown): boolean =>
  isReply(error) && PASSING.test(messageOf(error));

/** What a server is that a single connection leads to, and that answers so. */
export const NODE_OF_A_CLUSTER =
  'is a node of a Cluster. Give a Cluster client: "redis: new Cluster([…])"';

/** The key, or one of several, lies at another node of a Cluster. */
export const isElsewhere = (message: string): boolean => /^(MOVED|ASK|CROSSSLOT)\b/.test(message);

/** The server refused, and will until an operator changes a setting. */
export const isRefusal = (error: unknown): error is Error => isReply(error) && !isPassing(error);

/** The server does not know the user, or the password is another one. */
export const isLoginRefusal = (message: string): boolean =>
  /WRONGPASS|NOAUTH|invalid password/.test(message);

/** What becomes of a request when the connection breaks. */
export const CLOSED = 'the connection closed before the answer came';

/** The client's text for that names a number of retries, which is ours. */
export const isBroken = (error: unknown): boolean =>
  messageOf(error).startsWith('Reached the max retries per request limit');

/** What Redis and Lua say of a value that no script of ours wrote. At which key it is, they do not say. */
const IS_FOREIGN =
  /WRONGTYPE|attempt to|bad argument|not a valid (float|integer)|not an integer|invalid expire|arguments must be strings/;

/** At most how many keys of a call are named. */
const MOST_NAMED = 10;

/** The error of a script. If other software has written to one of its keys, it names the keys to look at. */
export function withForeignKeys(message: string, keys: readonly unknown[]): string {
  if (keys.length === 0 || !IS_FOREIGN.test(message)) return message;
  const named = keys.slice(0, MOST_NAMED).map((key) => `"${String(key)}"`);
  const more = keys.length > MOST_NAMED ? ` and ${String(keys.length - MOST_NAMED)} more` : '';
  return `one of the keys ${named.join(', ')}${more} holds what Holdfast did not write: delete it (${message})`;
}
