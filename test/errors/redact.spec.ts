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
    ['"redis://:secret@a"', '"redis://***@a"'],
  ])('%s becomes %s', (text, redacted) => {
    expect(redact(text)).toBe(redacted);
  });

  it('takes the given secrets out wherever they stand, and minds no empty one', () => {
    expect(redact('AUTH a.b+cd failed: a.b+cd', ['a.b+cd', ''])).toBe('AUTH *** failed: ***');
  });

  it('takes a short secret out where it stands in quotes, and leaves words alone that it is part of', () => {
    const text = `NOPERM this user has no permissions, args beginning with: 's' "s"`;
    expect(redact(text, ['s'])).toBe(
      `NOPERM this user has no permissions, args beginning with: '***' "***"`,
    );
  });
});
