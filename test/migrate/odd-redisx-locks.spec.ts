import { describe, expect, it } from '@jest/globals';
import { codeAfter, textAfter } from './migrated.js';

describe('a @WithLock of @nestjs-redisx/locks', () => {
  const file = (options: string, method = 'async pay() {}'): string =>
    `import { WithLock } from '@nestjs-redisx/locks';\n\nclass Orders {\n  @WithLock({ key: 'a', ${options} })\n  ${method}\n}\n`;

  it.each([
    ["scope: 'till'", '@WithLock has no option "scope".'],
    ['ttl: 30', '"ttl" has at least 50 ms.'],
    ['waitTimeout: 30', '"wait" is 0, or has at least 50 ms.'],
    ['retry', '"retry" becomes "wait", the sum of its delays.'],
    ['retry: settings', '"retry" becomes "wait", the sum of its delays.'],
    ['retry: { maxRetries: RETRIES }', '"retry" becomes "wait", the sum of its delays.'],
    ['retry: { initialDelay: DELAY }', '"retry" becomes "wait", the sum of its delays.'],
    ['onLockFailed: fail', 'write "onLockFailed" as "onLocked".'],
  ])('with %s stays, and is marked: %s', (options, hint) => {
    const text = file(options);
    expect(textAfter('a.ts', text)).toContain(`  // TODO(nestjs-holdfast): ${hint} https:`);
    expect(codeAfter('a.ts', text)).toBe(text);
  });
});
