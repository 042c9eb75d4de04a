/** A proxy or a limit of the server ends connections; the client connects again. */
const ATTEMPTS = 3;

/** Whether a message says that a connection ended, and nothing of the server. */
const isEnd = (message: string): boolean => /\bclosed?\b|ECONNRESET|EPIPE/i.test(message);

/** A message for people. The program's own connections are of no interest to them. */
export const withoutEnd = (message: string): string =>
  isEnd(message) ? 'the server, or a proxy before it, ends each connection at once' : message;

/**
 * Repeats a look whose connection ended.
 *
 * @param messagesIn why a look failed; empty if it did not
 */
export async function untilConnected<T>(
  look: () => Promise<T>,
  messagesIn: (result: T) => readonly string[],
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await look();
    if (attempt === ATTEMPTS || !messagesIn(result).some(isEnd)) return result;
  }
}
