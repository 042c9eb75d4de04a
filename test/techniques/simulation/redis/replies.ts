/** An answer of the server's that is an error. */
export class ModelError {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** An answer like `OK`, which scripts can tell from a text. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What a client gets. */
export type Reply = string | number | null | ModelError | readonly Reply[];

/** What a command gives, to clients and to scripts. Texts hold one byte a character. */
export type RawReply = string | number | null | ModelError | Status | readonly RawReply[];

/** What the model does not know, or does not do: a test that needs it must not go on. */
export class UnknownCommand extends Error {
  override readonly name = 'UnknownCommand';
}

/** A script used a key that its caller did not declare: Redis allows that, and some other servers do not. */
export class UndeclaredKey extends Error {
  override readonly name = 'UndeclaredKey';
}

export const OK = new Status('OK');
export const WRONG_TYPE = new ModelError(
  'WRONGTYPE Operation against a key holding the wrong kind of value',
);
export const NO_INTEGER = new ModelError('ERR value is not an integer or out of range');
export const NO_FLOAT = new ModelError('ERR value is not a valid float');
export const NO_BOUND = new ModelError('ERR min or max is not a float');
export const SYNTAX = new ModelError('ERR syntax error');
export const READ_ONLY = new ModelError("READONLY You can't write against a read only replica.");
export const OUT_OF_MEMORY = new ModelError(
  "OOM command not allowed when used memory > 'maxmemory'.",
);
export const NO_SCRIPT = new ModelError('NOSCRIPT No matching script. Please use EVAL.');

export const invalidExpiry = (command: string): ModelError =>
  new ModelError(`ERR invalid expire time in '${command}' command`);
