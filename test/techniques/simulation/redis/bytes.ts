/** Redis keeps bytes: inside the model every character of a text is one of them, so that lengths and orders are those of Redis. */

const IS_ASCII = /^[\0-\x7f]*$/;

export const toBytes = (text: string): string =>
  IS_ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');

export const fromBytes = (bytes: string): string =>
  IS_ASCII.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
