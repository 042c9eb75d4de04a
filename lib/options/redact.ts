/** Takes credentials out of a text: those in URLs, and the given secrets wherever they stand. */
export function redact(text: string, secrets: readonly string[] = []): string {
  // Up to the last @: a password that nobody encoded may hold one, and slashes.
  const withoutCredentials = text
    .replace(/(\w+:\/\/)\S*@/g, '$1***@')
    .replace(/([?&]\w*password=)[^&\s"]*/gi, '$1***');
  return secrets
    .filter((secret) => secret.length > 0)
    .reduce((result, secret) => result.replaceAll(secret, '***'), withoutCredentials);
}
