const CATALOGUE = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/errors.md';

/** The section of docs/errors.md that says what caused an error with this code, and what to do. */
export const docsOf = (code: string): string => `${CATALOGUE}#${code.toLowerCase()}`;

/**
 * An option or a decorator is wrong. Thrown when the class is defined, when the module starts, or by the call that was
 * given the option.
 */
export class LockConfigurationError extends Error {
  override readonly name = 'LockConfigurationError';
  readonly code = 'LOCK_CONFIGURATION';
  /** The address of the documentation of `code`. Node and Nest print it below the stack when the start fails. */
  readonly docs = docsOf(this.code);
}
