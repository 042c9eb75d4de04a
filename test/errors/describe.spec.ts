import { describe, expect, it } from '@jest/globals';
import { describe as describeOption } from '../../lib/errors/describe.js';

describe('the value of an option, in a message', () => {
  it.each<[unknown, string]>([
    ['5s', '"5s"'],
    ['a\nFORGED', String.raw`"a\nFORGED"`],
    [5, '5'],
    [undefined, 'undefined'],
    [null, 'null'],
    [false, 'false'],
  ])('%p is shown as it is', (value, shown) => {
    expect(describeOption(value)).toBe(shown);
  });

  it.each<[unknown, string]>([
    [{ password: 'secret' }, 'a value of type object'],
    [['secret'], 'a value of type object'],
    [() => 'secret', 'a value of type function'],
  ])('%p is shown by its type: it may hold secrets', (value, shown) => {
    expect(describeOption(value)).toBe(shown);
  });

  it.each([
    ['redis://user:secret@a:6379', '"redis://***@a:6379"'],
    ['user:secret@a:6379', '"***@a:6379"'],
    ['redis:/user:secret@a', '"***@a"'],
    ['redis://:se\ncret@a', '"redis://***@a"'],
    ['http://x redis://:sec@ret@a', '"http://***@a"'],
    ['a?password=secret', '"a?password=***"'],
  ])('%j shows no password, not even of a mistyped URL', (value, shown) => {
    expect(describeOption(value)).toBe(shown);
  });

  it('is shown up to 200 characters', () => {
    expect(describeOption('x'.repeat(200))).toBe(`"${'x'.repeat(200)}"`);
    expect(describeOption('x'.repeat(201))).toBe(`"${'x'.repeat(199)}…"`);
  });
});
