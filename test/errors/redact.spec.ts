import { describe, expect, it } from '@jest/globals';
import { redact } from '../../lib/errors/redact.js';

describe('redact', () => {
  it.each([
    ['redis://localhost:6379/3', 'redis://localhost:6379/3'],
    ['cannot reach redis://user:secret@a:6379 now', 'cannot reach redis://***@a:6379 now'],
    ['rediss://:secret@a', 'rediss://***@a'],
    ['redis://secret@a', 'redis://***@a'],
    ['redis://:se/cret@a', 'redis://***@a'],
    ['redis://:se@cret@a', 'redis://***@a'],
    ['redis://:secret@a and redis://:secret@b', 'redis://***@a and redis://***@b'],
    ['redis://a?password=secret&db=1', 'redis://a?password=***&db=1'],
    ['redis://a?db=1&sentinelPassword=secret', 'redis://a?db=1&sentinelPassword=***'],
    ['redis://a?PASSWORD=secret "and more"', 'redis://a?PASSWORD=*** "and more"'],
    ['"redis://a?password=secret"', '"redis://a?password=***"'],
    ['"redis://:secret@a"', '"redis://***@a"'],
  ])('%s becomes %s', (text, redacted) => {
    expect(redact(text)).toBe(redacted);
  });

  it('takes the given secrets out wherever they stand, and minds no empty one', () => {
    const text = `AUTH a.b+cd failed: a.b+cd, not ''`;
    expect(redact(text, ['a.b+cd', ''])).toBe(`AUTH *** failed: ***, not ''`);
  });

  it('takes a short secret out where it stands in quotes, and leaves words alone that it is part of', () => {
    const text = `NOPERM this user has no permissions, args beginning with: 's' "s"`;
    expect(redact(text, ['s'])).toBe(
      `NOPERM this user has no permissions, args beginning with: '***' "***"`,
    );
  });

  it('takes a short secret out of quotes of each kind', () => {
    expect(redact('`12345` "12345" \'12345\' 12345', ['12345'])).toBe('`***` "***" \'***\' 12345');
  });

  it('takes a secret of six letters out everywhere: that is no ordinary word', () => {
    expect(redact('not 12345 but x123456x', ['12345', '123456'])).toBe('not 12345 but x***x');
  });

  it('leaves a text of 4,000 characters whole', () => {
    expect(redact('word '.repeat(800))).toBe('word '.repeat(800));
  });

  it('ends a longer text with its last whole word: half a word may be half a secret', () => {
    expect(redact(`${'word '.repeat(799)}word5secret`, ['secret'])).toBe(`${'word '.repeat(799)}…`);
    expect(redact(`${'word '.repeat(799)}12345 more`)).toBe(`${'word '.repeat(799)}…`);
    expect(redact(`${'word '.repeat(799)}1234 more`)).toBe(`${'word '.repeat(799)}1234 …`);
    expect(redact('x'.repeat(4_001))).toBe('…');
  });

  it('takes secrets out of a text that it shortens, too', () => {
    const text = `AUTH secret-1 redis://:secret-2@a ${'word '.repeat(800)}`;
    expect(redact(text, ['secret-1'])).toMatch(/^AUTH \*{3} redis:\/\/\*{3}@a word .* word …$/);
  });
});
