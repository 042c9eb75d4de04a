import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { evalShaClass } from '../../lib/store/redis/client/ioredis/command-class.js';

const EvalSha = evalShaClass(Command);

const SHA = '0123456789abcdef0123456789abcdef01234567';

/** As ioredis writes it. */
const written = (args: readonly (string | number)[]): unknown =>
  new Command('evalsha', args.map(String)).toWritable(undefined as never);

describe('EVALSHA', () => {
  it('is written as ioredis writes it, whatever its arguments are', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.string({ minLength: 100, maxLength: 200 }),
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(text, fc.integer()), { maxLength: 20 }), (args) => {
        const command = new EvalSha(SHA, [1, ...args]);
        expect(command.toWritable()).toBe(written([SHA, 1, ...args]));
      }),
    );
  });

  it('is not made with so many arguments that the server would be blocked for seconds', () => {
    const call = [1, ...Array.from({ length: 65_536 }, () => 'key')] as const;
    expect(() => new EvalSha(SHA, call)).toThrow(
      new RangeError('a script has at most 65536 arguments'),
    );
  });

  it('has its keys where a Cluster looks for them', () => {
    const command = new EvalSha(SHA, [2, 'one', 'two', 'no key', 7]);
    expect(command.getKeys()).toEqual(['one', 'two']);
  });
});
