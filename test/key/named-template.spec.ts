import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockKeyError } from '../../lib/errors.js';
import { parseKeyTemplate, parseNamedTemplate } from '../../lib/key/index.js';

const parsed = (template: unknown) => parseNamedTemplate(template, 'defineLock');

describe('a template whose values are given by name', () => {
  it('has each value wherever its name stands', () => {
    expect(parsed('nightly')(undefined)).toBe('nightly');
    expect(parsed('<b>:<a>:<b>')({ a: 1, b: 2 })).toBe('2:1:2');
  });

  it('takes the value itself where there is one name', () => {
    expect(parsed('<a>:<a>')(1)).toBe('1:1');
    expect(() => parsed('<b>:<a>:<b>')(1)).toThrow(LockKeyError);
  });

  it.each([
    ['order:<orderId>', ['42:items']],
    ['<orderId>-<more>', ['x-y', 'z']],
    ['a:<orderId>', [42n]],
    ['<orderId>', ['y'.repeat(300)]],
    ['größe:<orderId>', [true]],
  ] as const)('makes of %p the key that @WithLock makes of it', (template, values) => {
    const method = function pay(orderId: unknown, more: unknown): unknown {
      return [orderId, more];
    };
    const [orderId, more]: readonly unknown[] = values;
    const ofMethod = parseKeyTemplate(template, {
      where: '@WithLock on Orders.pay',
      method,
      owner: undefined,
      name: 'pay',
    });
    expect(parsed(template)({ orderId, more })).toBe(ofMethod.resolve(values, undefined));
  });

  it.each([
    [undefined, 'needs a key template, received undefined'],
    ['', 'is empty'],
    ['order:{<id>}', 'contains a brace outside of a placeholder'],
    ['a<b', 'contains a "<" or ">" outside of a placeholder'],
    ['<a><b>', 'is ambiguous: two values stand side by side'],
    ['<order.id>', 'has <order.id>, but the placeholders of a definition must be plain names'],
    ['<0>', 'has <0>'],
    ['<>', 'has <>'],
    ['<fireTime>', 'has <fireTime>'],
    ['<class>:a', 'has <class>'],
    ['a'.repeat(2_000), 'is longer than the 1024 characters of a key'],
  ])('refuses %p', (template, problem) => {
    expect(() => parsed(template)).toThrow(LockConfigurationError);
    expect(() => parsed(template)).toThrow(problem);
  });

  it.each([[undefined], [null], [''], [Number.NaN], [{}]])('refuses %p as a value', (value) => {
    expect(() => parsed('order:<orderId>')({ orderId: value })).toThrow(LockKeyError);
  });

  it('refuses a key that is too long', () => {
    const keyOf = parsed(['<a>', '<b>', '<c>', '<d>', '<e>'].join(':'));
    const long = 'y'.repeat(250);
    const values = { a: long, b: long, c: long, d: long, e: long };
    const resolve = (): string => keyOf(values);
    expect(resolve).toThrow(LockKeyError);
    expect(resolve).toThrow(
      expect.objectContaining({
        detail: expect.stringContaining('the key has 1254 characters, more than 1024'),
      }),
    );
  });
});
