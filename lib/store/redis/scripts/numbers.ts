/**
 * What numbers in replies have to be. A server that lies, or another program that answers in its place, must not have
 * us count with NaN.
 */

/** Clients make doubles of larger integers, and neighbours become equal. */
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * A PTTL. It is negative for a key without a TTL, and for a key that is gone. Other software may give a key one that is
 * larger than any count.
 */
export const isPttl = (value: unknown): value is number => Number.isInteger(value);

/** The ticket of a place in line, if that is one. */
export function ticketOf(text: unknown): number | undefined {
  const ticket = typeof text === 'string' && text !== '' ? Number(text) : NaN;
  return Number.isFinite(ticket) ? ticket : undefined;
}
