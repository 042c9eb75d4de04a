import { quoteKeys } from './quote-keys.js';
import { LockError } from './lock-error.js';
import { keysPhrase, wasOrWere } from './phrases.js';

/** The most calls of a circle that an error tells of one by one. */
const MOST_CALLS_NAMED = 10;

/**
 * The call waits, inside a section, for a key that is held by a section which waits, over others perhaps, for one that this call's own
 * section holds (HTTP 409): it would wait indefinitely, or until one of them gives up. Told at once to the one that closes the circle; the
 * others go on as soon as its section has ended. Seen within one process.
 */
export class LockDeadlockError extends LockError {
  /** The key that was asked for, what its holder waits for, and so on; the last one is held around this call. */
  readonly circle: readonly string[];

  constructor(facts: { readonly keys: readonly string[]; readonly circle: readonly string[] }) {
    const [first = '', ...others] = facts.circle;
    const way = others
      .slice(0, MOST_CALLS_NAMED)
      .map(
        (key, index) =>
          `${index === 0 ? 'a call' : 'another one,'} which waits for ${quoteKeys([key])}, held by `,
      );
    const unnamed = others.length - way.length;
    if (unnamed > 0)
      way.push(`${String(unnamed)} more calls that wait one for the other, the last one for `);
    super({
      code: 'LOCK_DEADLOCK',
      keys: facts.keys,
      body: {
        statusCode: 409,
        message: 'This operation and another one waited for each other. Try again later.',
        error: 'Conflict',
      },
      retryAfterMs: Infinity,
      detail:
        `${keysPhrase(facts.keys)} ${wasOrWere(facts.keys)} not waited for, because that would never end: ${quoteKeys([first])} is held by ` +
        `${way.join('')}this call. ` +
        'Take all of the keys in one call, or in the same order everywhere.',
    });
    this.circle = facts.circle;
  }
}
