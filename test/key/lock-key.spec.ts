import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LockKeyError } from '../../lib/errors.js';
import { parseKeyTemplate } from '../../lib/key/key-template.js';
import { lockKey, nameOfKeys } from '../../lib/key/lock-key.js';
import { detailed } from '../support/detail.js';

/** Calls the tag as the compiler does, with texts that are made up. */
const tagged = (texts: readonly string[], ...values: readonly unknown[]): string =>
  lockKey(Object.assign([...texts], { raw: texts }), ...values);

describe('lockKey', () => {
  it('keeps the text and encodes the values', () => {
    expect(lockKey`order:${'42:items'}:${7}`).toBe('order:42%3Aitems:7');
    expect(lockKey`report`).toBe('report');
    expect(lockKey`${'{a}'}`).toBe('%7Ba%7D');
  });

  it('encodes what separates the values where no colon does', () => {
    expect(lockKey`${'x-y'}-${'z'}`).toBe('x%2Dy-z');
    expect(lockKey`${'x'}-${'y-z'}`).toBe('x-y%2Dz');
    expect(lockKey`order-${'x-y'}`).toBe('order-x-y');
  });

  it('leaves values alone where a colon is among the separators', () => {
    expect(lockKey`${'x-y'}-:${'z'}`).toBe('x-y-:z');
    expect(lockKey`${'x-y'}:-${'z'}`).toBe('x-y:-z');
  });

  it('encodes the separators of all values in each of them', () => {
    expect(lockKey`${'a-b_c'}-${'a-b_c'}_${'a-b_c/d'}`).toBe('a%2Db%5Fc-a%2Db%5Fc_a%2Db%5Fc/d');
    expect(lockKey`${'a💶b'}💶${'c'}`).toBe('a%F0%9F%92%B6b💶c');
  });

  it('says which value is missing', () => {
    expect(() => lockKey`order:${undefined}`).toThrow(LockKeyError);
    expect(() => lockKey`order:${undefined}`).toThrow(
      expect.objectContaining({
        detail:
          'lockKey: the value after "order:" is undefined, and all callers without a value would share one lock. ' +
          'Make sure that it is set before the call.',
      }),
    );
  });

  it('refuses values that nothing keeps apart', () => {
    expect(() => lockKey`${'a'}${'b'}`).toThrow(
      detailed(
        'lockKey: two values stand side by side, so "a", "bc" and "ab", "c" would be one key. Put ":" between them.',
      ),
    );
    expect(() => lockKey`${'a'}and${'b'}`).toThrow(
      detailed(
        'lockKey: "and" between two values could be part of a value, so different values would be one key. Put ":" between them.',
      ),
    );
    expect(() => lockKey`${'a'}and${'b'}`).toThrow(LockKeyError);
  });

  it('refuses text that may not stand in a key', () => {
    expect(() => lockKey``).toThrow(LockKeyError);
    expect(() => lockKey`{order}:${1}`).toThrow(detailed('a brace'));
  });

  it('makes the same key as the template of the same text', () => {
    const text = fc.string({ unit: fc.constantFrom('a', ':', '-', '_', ' ', '%'), maxLength: 4 });
    const value = fc.string({
      unit: fc.constantFrom('a', ':', '-', '_', ' ', '%', '{', '~'),
      minLength: 1,
    });
    fc.assert(
      fc.property(text, text, text, value, value, (before, middle, after, a, b) => {
        const separator = `${middle}.`;
        const template = parseKeyTemplate(`${before}<0>${separator}<1>${after}`, {
          where: 'here',
          method: (_first: string, _second: string) => undefined,
          owner: undefined,
          name: 'method',
        });
        expect(tagged([before, separator, after], a, b)).toBe(template.resolve([a, b], undefined));
      }),
    );
  });
});

describe('what messages call a lock whose key was made by lockKey', () => {
  const taggedMany = (many: number, name: string): void => {
    for (let made = 0; made < many; made += 1) tagged([`${name}:`, ''], made);
  };

  it('is its text, without a value', () => {
    expect(nameOfKeys(lockKey`named:${42}:receipt`)).toBe('named:…');
    expect(nameOfKeys(lockKey`named-alone`)).toBe('named-alone');
  });

  it('is unknown where no text comes first, and of a key that was made otherwise', () => {
    expect(nameOfKeys(lockKey`${'unnamed'}:receipt`)).toBeUndefined();
    expect(nameOfKeys('unnamed:42')).toBeUndefined();
  });

  it('is, of several keys, each name once', () => {
    const [one, two, other] = [lockKey`first:${1}`, lockKey`first:${2}`, lockKey`second:${1}`];
    expect(nameOfKeys([one, two, other])).toBe('first:…, second:…');
    expect(nameOfKeys([one, 'unnamed:42'])).toBe('first:…');
    expect(nameOfKeys(['unnamed:42', 'unnamed:43'])).toBeUndefined();
  });

  it('is remembered for at least the last thousand keys, and then forgotten', () => {
    const key = lockKey`kept:${42}`;
    taggedMany(999, 'others');
    expect(nameOfKeys(key)).toBe('kept:…');
    taggedMany(1_001, 'others');
    expect(nameOfKeys(key)).toBeUndefined();
  });
});
