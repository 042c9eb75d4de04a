/** Keys as messages name them: `"order:42", "order:43"`. */
export const quoteKeys = (keys: readonly string[]): string =>
  keys.map((key) => `"${key}"`).join(', ');

export const keysPhrase = (keys: readonly string[]): string =>
  keys.length === 1 ? `Lock ${quoteKeys(keys)}` : `Locks ${quoteKeys(keys)}`;

export const keysWere = (keys: readonly string[]): string =>
  `${keysPhrase(keys)} ${keys.length === 1 ? 'was' : 'were'}`;
