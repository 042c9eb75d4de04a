import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LockKeyError } from '../../lib/errors.js';
import { canonicalKeys, checkKey } from '../../lib/key/check-key.js';
import { detailed } from '../support/detail.js';

describe('checkKey', () => {
  it.each(['order:42', 'a', 'two words', 'order:42%3Aitems', 'Zürich💶', 'x'.repeat(1024)])(
    'accepts %s',
    (key) => {
      expect(checkKey(key)).toBe(key);
    },
  );

  it.each<[unknown, string]>([
    [undefined, 'this one is undefined'],
    [null, 'this one is null'],
    ['', 'this one is an empty string'],
    [42, 'this one is a number'],
    [['a'], 'this one is an array'],
    [Promise.resolve('a'), 'this one is a Promise'],
    ['x'.repeat(1025), 'this one has 1025'],
    ['{order}:42', 'contains a brace'],
    ['order:42}', 'contains a brace'],
    ['order:<orderId>', 'contains a "<" or ">"'],
    ['order\n42', 'contains a control character'],
    ['order\u0085', 'contains a control character'],
    ['order\u2028', 'contains a control character'],
    ['order:\ud800', 'contains half of a surrogate pair'],
  ])('refuses %p and names lockKey', (key, problem) => {
    const check = () => checkKey(key);
    expect(check).toThrow(LockKeyError);
    expect(check).toThrow(detailed(problem));
    expect(check).toThrow(detailed('lockKey`order:${id}`'));
  });

  it('says what to do instead', () => {
    expect(() => checkKey(42)).toThrow(
      detailed(
        'A lock key must be a non-empty string, and this one is a number. Make it with lockKey`order:${id}`.',
      ),
    );
    expect(() => checkKey('x'.repeat(1_025))).toThrow(
      detailed(
        'A lock key has at most 1024 characters, and this one has 1025. Make it with lockKey`order:${id}`, which hashes long values.',
      ),
    );
    expect(() => checkKey('{a}')).toThrow(
      detailed(
        'The lock key "{a}" contains a brace. Make it with lockKey`order:${id}`, which encodes values.',
      ),
    );
  });

  it('shows a key with control characters on one line', () => {
    expect(() => checkKey('a\nFORGED')).toThrow(detailed(String.raw`"a\nFORGED"`));
  });
});

describe('canonicalKeys', () => {
  const key = fc.string({
    unit: fc.constantFrom('a', 'b', 'Z', ':', 'é', '💶', '｡'),
    minLength: 1,
    maxLength: 4,
  });

  it('takes one key or a list', () => {
    expect(canonicalKeys('a')).toEqual(['a']);
    expect(canonicalKeys(['b', 'a', 'b'])).toEqual(['a', 'b']);
  });

  it('sorts by code unit, as no locale does', () => {
    expect(canonicalKeys(['｡', '💶', 'é', 'z', 'Z'])).toEqual(['Z', 'z', 'é', '💶', '｡']);
  });

  it('refuses an empty list, which would run unlocked', () => {
    expect(() => canonicalKeys([])).toThrow(LockKeyError);
    expect(() => canonicalKeys([])).toThrow(
      detailed(
        'The list of lock keys is empty, and nothing would be locked. Name at least one key.',
      ),
    );
  });

  it('takes 1,000 keys, however often they are named, and no more', () => {
    const keys = Array.from({ length: 1_001 }, (_, index) => `order:${index}`);
    const most = keys.slice(1);
    expect(canonicalKeys([...most, ...most])).toHaveLength(1_000);
    expect(() => canonicalKeys(keys)).toThrow(LockKeyError);
    expect(() => canonicalKeys(keys)).toThrow(
      detailed(
        'A call locks at most 1000 keys, and this one names 1001. Redis takes all keys of a call in one step and serves no other client meanwhile. ' +
          'Lock what contains them ("account:7" for all of its orders), or do the work in batches, each under a lock of its own.',
      ),
    );
  });

  it('checks every key, holes too', () => {
    // eslint-disable-next-line no-sparse-arrays -- the point
    for (const keys of [['a', ''], ['a', , 'b'], ['a', undefined], [], 42, undefined])
      expect(() => canonicalKeys(keys as string[])).toThrow(LockKeyError);
  });

  it('leaves the list of the caller alone and cannot be changed', () => {
    const keys = ['b', 'a'];
    expect(Object.isFrozen(canonicalKeys(keys))).toBe(true);
    expect(keys).toEqual(['b', 'a']);
  });

  it('is the same for every order and repetition of the same keys, and for its own result', () => {
    fc.assert(
      fc.property(fc.array(key, { minLength: 1 }), fc.infiniteStream(fc.nat()), (keys, random) => {
        const shuffled = keys
          .concat(keys)
          .map((each) => ({ each, order: random.next().value as number }))
          .sort((a, b) => a.order - b.order)
          .map(({ each }) => each);
        const canonical = canonicalKeys(keys);
        expect(canonicalKeys(shuffled)).toEqual(canonical);
        expect(canonicalKeys(canonical)).toEqual(canonical);
        expect(new Set(canonical)).toEqual(new Set(keys));
        expect(
          canonical.every((each, index) => index === 0 || (canonical[index - 1] ?? '') < each),
        ).toBe(true);
      }),
    );
  });
});
