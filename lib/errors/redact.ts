/** Shorter secrets are parts of ordinary words. */
const LONG_ENOUGH = 6;

/** Takes credentials out of a text: those in URLs, and the given secrets wherever they stand. Short ones only where they stand in quotes. */
export function redact(text: string, secrets: readonly string[] = []): string {
  // Up to the last @: a password that nobody encoded may hold one, and slashes.
  const withoutCredentials = text
    .replace(/(\w+:\/\/)\S*@/g, '$1***@')
    .replace(/([?&]\w*password=)[^&\s"]*/gi, '$1***');
  return secrets.filter((secret) => secret.length > 0).reduce(withoutSecret, withoutCredentials);
}

/** Redis and ioredis quote what they repeat of a command. */
function withoutSecret(text: string, secret: string): string {
  if (secret.length >= LONG_ENOUGH) return text.replaceAll(secret, '***');
  return QUOTES.reduce(
    (result, quote) => result.replaceAll(quote + secret + quote, `${quote}***${quote}`),
    text,
  );
}

const QUOTES = [`'`, '"', '`'];
