import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LockKeyError } from '../../lib/errors.js';
import { describeValue, encodeKeyValue, type EncodeOptions } from '../../lib/key/encode.js';
import { cases } from '../support/cases.js';

/** Of a property. */
const RUNS = cases(300, 2_000);

const wellFormed = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 });
const hostile = fc.string({
  unit: fc.constantFrom(
    ':',
    '%',
    '{',
    '}',
    '<',
    '>',
    '~',
    '3',
    'A',
    'a',
    '\n',
    '\u007f',
    '\u0085',
    '\u2028',
    'é',
    '💶',
  ),
  minLength: 1,
  maxLength: 12,
});
const values = fc.oneof(
  wellFormed,
  hostile,
  hostile.map((text) => text.repeat(60)),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.bigInt(),
  fc.boolean(),
);

const problemWith = (value: unknown): string => {
  try {
    encodeKeyValue(value, '<order.id>');
  } catch (error) {
    if (error instanceof LockKeyError) return error.detail;
    throw error;
  }
  throw new Error('it was encoded');
};

describe('encodeKeyValue', () => {
  it.each<[unknown, string]>([
    ['42', '42'],
    [42, '42'],
    [-0, '0'],
    [1e21, '1e+21'],
    [42n, '42'],
    [false, 'false'],
    ['0', '0'],
    ['two words', 'two words'],
    ['Zürich-é/ü.💶', 'Zürich-é/ü.💶'],
    ['a:b', 'a%3Ab'],
    ['{slot}', '%7Bslot%7D'],
    ['100%', '100%25'],
    ['<id>', '%3Cid%3E'],
    ['a\r\n\0', 'a%0D%0A%00'],
    ['\u007f\u0085\u2028\u2029', '%7F%C2%85%E2%80%A8%E2%80%A9'],
  ])('spells %p as %s', (value, expected) => {
    expect(encodeKeyValue(value, '<0>')).toBe(expected);
  });

  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    [null, 'null'],
    ['', 'an empty string'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [-Infinity, '-Infinity'],
  ])('refuses %p, which everybody would share', (value, called) => {
    expect(problemWith(value)).toBe(
      `<order.id> is ${called}, and all callers without a value would share one lock. Make sure that it is set before the call.`,
    );
  });

  it.each<[unknown, string]>([
    [{}, 'an object'],
    [Object.create(null), 'an object'],
    [[1], 'an array'],
    [new Date(0), 'a Date'],
    [Promise.resolve(1), 'a Promise'],
    [() => 1, 'a function'],
    [Symbol('id'), 'a symbol'],
    [Object('42'), 'an object'],
  ])('refuses %p, which has no one spelling', (value, called) => {
    expect(problemWith(value)).toBe(
      `<order.id> is ${called}, which has no one spelling. Use a key function or a path such as <0.id>.`,
    );
  });

  it.each(['\ud800', 'a\udc00b', '\udc00\ud800'])('refuses half of a surrogate pair', (value) => {
    expect(problemWith(value)).toBe(
      '<order.id> is not well-formed Unicode: it has half of a surrogate pair. Refuse it before the call.',
    );
  });

  it('blames the sender of the request only when told so', () => {
    const thrown = (options?: EncodeOptions) => {
      try {
        return encodeKeyValue(null, '<request.body.id>', options);
      } catch (error) {
        return (error as LockKeyError).getStatus();
      }
    };
    expect(thrown({ fromRequest: true })).toBe(400);
    expect(thrown({ fromRequest: false })).toBe(500);
    expect(thrown()).toBe(500);
  });

  it('replaces a value that is longer than 256 when encoded by its hash', () => {
    expect(encodeKeyValue('x'.repeat(256), '<0>')).toBe('x'.repeat(256));
    expect(encodeKeyValue('x'.repeat(257), '<0>')).toMatch(/^%~[0-9a-f]{64}$/);
    expect(encodeKeyValue(':'.repeat(86), '<0>')).toMatch(/^%~[0-9a-f]{64}$/);
  });

  it('never spells a value like a hash that was not made from it', () => {
    const hash = encodeKeyValue('x'.repeat(1000), '<0>');
    expect(encodeKeyValue(hash, '<0>')).not.toBe(hash);
  });

  it('hashes the whole of a long value', () => {
    const ends = ['a', 'b', '%', '%25'].map((end) => encodeKeyValue('x'.repeat(999) + end, '<0>'));
    expect(new Set(ends).size).toBe(4);
  });

  it('is undone by decoding, so that values that differ are spelled differently', () => {
    fc.assert(
      fc.property(values, (value) => {
        const encoded = encodeKeyValue(value, '<0>');
        if (!encoded.startsWith('%~')) expect(decodeURIComponent(encoded)).toBe(String(value));
      }),
      { numRuns: RUNS },
    );
  });

  it('spells two values alike exactly when their texts are the same', () => {
    fc.assert(
      fc.property(values, values, (left, right) => {
        expect(encodeKeyValue(left, '<0>') === encodeKeyValue(right, '<0>')).toBe(
          String(left) === String(right),
        );
      }),
      { numRuns: RUNS },
    );
  });

  it('leaves nothing reserved in a key and stays short', () => {
    fc.assert(
      fc.property(values, (value) => {
        const encoded = encodeKeyValue(value, '<0>');
        expect(encoded).not.toMatch(/[:{}<>\p{Cc}\u2028\u2029]|%(?![0-9A-F]{2}|~[0-9a-f]{64}$)/u);
        expect(encoded.length).toBeLessThanOrEqual(256);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('describeValue', () => {
  it('never tells the content of a value', () => {
    expect(['secret', 1234, 12n, { secret: 1 }].map(describeValue)).toEqual([
      'a string',
      'a number',
      'a bigint',
      'an object',
    ]);
  });
});
