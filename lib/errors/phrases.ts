import { quoteKeys } from './quote-keys.js';

/** What a client gets for a fault of the application. */
export const INTERNAL = {
  statusCode: 500,
  message: 'Internal server error',
  error: 'Internal Server Error',
};

export const keysPhrase = (keys: readonly string[]): string =>
  keys.length === 1 ? `Lock ${quoteKeys(keys)}` : `Locks ${quoteKeys(keys)}`;

export const wasOrWere = (keys: readonly string[]): string => (keys.length === 1 ? 'was' : 'were');
