import { describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import fc from 'fast-check';
import { LockConfigurationError, LockKeyError } from '../../../lib/errors.js';
import { canonicalKeys, checkKey, lockKey, parseKeyTemplate } from '../../../lib/key/index.js';
import { resolveOptions } from '../../../lib/options/resolve-options.js';
import { keyNames } from '../../../lib/store/redis/scripts/key-names.js';
import { cases } from '../../support/cases.js';

const numRuns = cases(200, 2_000);

/** What means something in keys, in templates, or to Redis. */
const sharp = fc.string({
  unit: fc.constantFrom(...Array.from('{}<>:.%$[]*|/ ~a3A0\\\n\u0000\u2028é💶'), '\ud800', 'lock'),
  maxLength: 14,
});

const text = fc.oneof(sharp, fc.string({ unit: 'binary', maxLength: 30 }));

const anything = fc.oneof(
  text,
  fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withTypedArray: true }),
);

/** What it gives, or nothing where it refuses with an error of this class; any other error is a fault. */
function unlessRefused<T>(refusal: new (...args: never) => Error, make: () => T) {
  try {
    return make();
  } catch (error) {
    if (error instanceof refusal) return undefined;
    throw error;
  }
}

class Orders {
  pay(orderId: unknown, order: unknown): unknown[] {
    return [orderId, order];
  }
}

const parse = (template: string) =>
  parseKeyTemplate(template, {
    where: 'here',
    method: Orders.prototype.pay,
    owner: Orders,
    name: 'pay',
  });

describe('whatever is given for a key', () => {
  it('is refused by an error of ours, or is one that Redis keeps as it is', () => {
    fc.assert(
      fc.property(anything, (given) => {
        const key = unlessRefused(LockKeyError, () => checkKey(given));
        if (key !== undefined) expect(Buffer.from(key).toString()).toBe(given);
      }),
      { numRuns },
    );
  });

  it('is refused also in a list', () => {
    fc.assert(
      fc.property(fc.oneof(anything, fc.array(anything, { maxLength: 4 })), (given) => {
        const keys = unlessRefused(LockKeyError, () => canonicalKeys(given as string[]));
        if (keys !== undefined) for (const key of keys) expect(checkKey(key)).toBe(key);
      }),
      { numRuns },
    );
  });

  it('as a value makes a key, or is refused', () => {
    fc.assert(
      fc.property(anything, anything, (one, other) => {
        const [left, right] = [one, other].map((value) =>
          unlessRefused(LockKeyError, () => lockKey`order:${value}`),
        );
        if (left === undefined || right === undefined) return;
        expect(checkKey(left)).toBe(left);
        expect(left === right).toBe(String(one) === String(other));
      }),
      { numRuns },
    );
  });
});

describe('whatever is given for a template', () => {
  const template = fc.oneof(
    text,
    fc
      .array(
        fc.oneof(
          sharp,
          fc.constantFrom('<orderId>', '<order.id>', '<1.a>', '<body.id>', '<request.body.id>'),
        ),
      )
      .map((parts) => parts.join('')),
  );

  it('is refused when it is parsed, or makes keys', () => {
    fc.assert(
      fc.property(template, anything, anything, (source, first, second) => {
        const parsed = unlessRefused(LockConfigurationError, () => parse(source));
        if (parsed === undefined) return;
        const request = { body: first, params: second } as never;
        const key = unlessRefused(LockKeyError, () => parsed.resolve([first, second], request));
        if (key !== undefined) expect(checkKey(key)).toBe(key);
      }),
      { numRuns },
    );
  });
});

describe('whatever is given for a prefix', () => {
  const acceptedPrefix = (keyPrefix: unknown): string | undefined =>
    unlessRefused(
      LockConfigurationError,
      () => resolveOptions({ store: 'memory', keyPrefix: keyPrefix as string }).keyPrefix,
    );
  const isKey = (key: string) => unlessRefused(LockKeyError, () => checkKey(key)) !== undefined;

  it('no two keys share a name, and the names of one share a slot', () => {
    fc.assert(
      fc.property(text, text, text, (given, one, other) => {
        const prefix = acceptedPrefix(given);
        if (prefix === undefined || !isKey(one) || !isKey(other) || one === other) return;
        const names = keyNames(prefix);
        const [left, right] = [
          Object.values(names(one)),
          Object.values(names(other)),
        ] as string[][];
        expect(new Set([...left!, ...right!]).size).toBe(left!.length + right!.length);
        expect(new Set(left!.map((name) => calculateSlot(name))).size).toBe(1);
      }),
      { numRuns },
    );
  });

  it('that is no text is refused', () => {
    fc.assert(
      fc.property(anything, (given) => {
        const prefix = acceptedPrefix(given);
        if (prefix !== undefined && given != null) expect(prefix).toBe(given);
      }),
      { numRuns },
    );
  });
});
