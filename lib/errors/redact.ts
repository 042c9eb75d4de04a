/** Shorter secrets are parts of ordinary words. */
const LONG_ENOUGH = 6;

/**
 * Messages are for people. A server may reply with a megabyte, which would keep the event loop busy for minutes here.
 */
const LONGEST_MESSAGE = 4_000;

/**
 * Removes credentials from a text: those in URLs, and the given secrets. Short secrets are removed only where they
 * stand in quotes. A text of more than 4,000 characters ends with the last whole word before that, because half a word
 * may be half a secret.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  if (text.length > LONGEST_MESSAGE) {
    const whole = text.slice(0, text.lastIndexOf(' ', LONGEST_MESSAGE - 1) + 1);
    return `${redact(whole, secrets)}…`;
  }
  // Up to the last @: a password that was not encoded may contain one, and slashes.
  const withoutCredentials = text
    .replace(/(\w:\/\/)\S*@/g, '$1***@')
    .replace(/([?&]\w*password=)[^&\s"]*/gi, '$1***');
  return secrets.filter((secret) => secret.length > 0).reduce(withoutSecret, withoutCredentials);
}

/** Redis and ioredis quote the parts of a command that they repeat. */
function withoutSecret(text: string, secret: string): string {
  if (secret.length >= LONG_ENOUGH) return text.replaceAll(secret, '***');
  return QUOTES.reduce(
    (result, quote) => result.replaceAll(quote + secret + quote, `${quote}***${quote}`),
    text,
  );
}

const QUOTES = [`'`, '"', '`'];
