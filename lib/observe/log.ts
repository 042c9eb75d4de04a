/** The log of the library: Nest's logger in an application. */
export interface Log {
  warn(message: string): void;
  error(messageOrError: unknown, cause?: unknown): void;
}
