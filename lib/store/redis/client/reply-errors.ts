/** Answers of a server that is busy with something that passes (Redis' own error codes; before Redis 7 a script's come behind a dash). */
const PASSING =
  /(^|: -)(LOADING|TRYAGAIN|MOVED|ASK|CLUSTERDOWN|READONLY|MASTERDOWN|NOREPLICAS|BUSY)\b/;

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** The server said no, as opposed to: the connection failed. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/** The server said no, and will for a moment only. */
export const isPassing = (error: unknown): boolean =>
  isReply(error) && PASSING.test(messageOf(error));

/** The server said no, and will until somebody changes a setting. */
export const isRefusal = (error: unknown): error is Error => isReply(error) && !isPassing(error);

/** The server does not know the user, or the password is another one. */
export const isLoginRefusal = (message: string): boolean =>
  /WRONGPASS|NOAUTH|invalid password/.test(message);
