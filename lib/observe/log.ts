/** Where the library says what nobody asked for: Nest's logger in an application. */
export interface Log {
  warn(message: string): void;
  error(messageOrError: unknown, cause?: unknown): void;
}
