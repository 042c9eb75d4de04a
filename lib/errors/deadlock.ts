import { LockError } from './lock-error.js';
import { keysPhrase, quoteKeys, wasOrWere } from './quote-keys.js';

/** The error names at most this many calls of a circle. */
const MOST_CALLS_NAMED = 10;

/**
 * The call would wait in a circle (HTTP 409). It waits, inside a section, for a key whose holder waits, directly or
 * over others, for a key that this section holds. Without the error it would wait until one of them gives up.
 *
 * Only the call that closes the circle is rejected. The others continue as soon as its section has ended. Circles are
 * detected within one process.
 */
export class LockDeadlockError extends LockError {
  /**
   * The key that was asked for, the key that its holder waits for, and so on. This call's section holds the last one.
   */
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
      clientMessage: 'This operation and another one waited for each other. Try again later.',
      message: (lock) =>
        `The ${lock} was not waited for: its holder waits for a lock that this call holds.`,
      retryAfterMs: Infinity,
      detail:
        `${keysPhrase(facts.keys)} ${wasOrWere(facts.keys)} not waited for, because that would never end: ${quoteKeys([first])} is held by ` +
        `${way.join('')}this call. ` +
        'Take all of the keys in one call, or in the same order everywhere.',
    });
    this.circle = facts.circle;
  }
}
