/** Takes credentials out of a text: those in URLs, and the given secrets wherever they stand. */
export function redact(text: string, secrets: readonly string[] = []): string {
  const withoutUserInfo = text.replace(/(\w+:\/\/)[^@/\s]*@/g, '$1***@');
  return secrets
    .filter((secret) => secret.length > 0)
    .reduce((result, secret) => result.replaceAll(secret, '***'), withoutUserInfo);
}
