/** Keys as messages name them: `"order:42", "order:43"`. */
export const quoteKeys = (keys: readonly string[]): string =>
  keys.map((key) => `"${key}"`).join(', ');
