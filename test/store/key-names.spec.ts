import { describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { keyIn, keyNames } from '../../lib/store/redis/scripts/key-names.js';

const PREFIXES = ['lock:', '', '{app}:', 'team:{app}:lock:', 'a{b', '{{app}:', '{}x{y}:'];
const KEYS = [
  'order:42',
  'order:42:fence',
  'order:42:queue',
  'order:42:once',
  'a b',
  'ключ',
  ':fence',
];

describe('keyNames', () => {
  it('calls a lock what every Redlock client calls it: prefix and key', () => {
    expect(keyNames('lock:')('order:42').main).toBe('lock:order:42');
  });

  it.each(PREFIXES.filter((prefix) => prefix !== '{}x{y}:'))(
    'puts all keys of a lock into one slot, with the prefix "%s"',
    (prefix) => {
      for (const key of KEYS) {
        const { main, fence, queue, once } = keyNames(prefix)(key);
        expect([fence, queue, once].map((name) => calculateSlot(name))).toEqual(
          Array(3).fill(calculateSlot(main)),
        );
      }
    },
  );

  it('lets a hash tag in the prefix choose the slot of all locks', () => {
    const slots = KEYS.map((key) => calculateSlot(keyNames('{app}:')(key).fence));
    expect(new Set(slots)).toEqual(new Set([calculateSlot('app')]));
  });

  it('gives side keys names that no key can have, not even one that ends like them', () => {
    for (const prefix of PREFIXES) {
      const names = KEYS.flatMap((key) => Object.values(keyNames(prefix)(key)) as string[]);
      expect(new Set(names).size).toBe(names.length);
      for (const key of KEYS) {
        const { fence, queue, once } = keyNames(prefix)(key);
        // Whoever wrote the name of a side key behind the prefix would need a brace, which keys must not have.
        for (const side of [fence, queue, once])
          expect(!side.startsWith(prefix) || /[{}]/.test(side.slice(prefix.length))).toBe(true);
      }
    }
  });
});

describe('keyIn', () => {
  it.each([
    ['lock:order:42', 'order:42'],
    ['{lock:order:42}:queue', 'order:42'],
    ['{lock:order:42}:fence', undefined],
    ['lock:', undefined],
    ['session:7', undefined],
  ])('finds in the name %j the key %j', (name, key) => {
    expect(keyIn('lock:')(name)).toBe(key);
  });
});
