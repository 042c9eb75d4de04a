import { describe, expect, it, jest } from '@jest/globals';

let present: Readonly<Record<string, unknown>> = {};

jest.unstable_mockModule('../../lib/store/redis/client/installed.cjs', () => ({
  default: (name: string): unknown => present[name],
}));

const { LockConfigurationError } = await import('nestjs-holdfast');
const { anyPackage, ioredis, learnRepliesOf } =
  await import('../../lib/store/redis/client/ioredis/packages.js');
const { isReply, REPLY_ERRORS } = await import('../../lib/store/redis/client/reply-errors.js');

/** Another copy of the package: with classes of its own, of other names. */
function copy() {
  class E extends Error {}
  return { ReplyError: E, Redis: class R {}, Cluster: class C {} };
}

describe('the package that connections are made with', () => {
  it.each([
    ['ioredis', ['ioredis']],
    ['iovalkey', ['iovalkey']],
    ['iovalkey', ['ioredis', 'iovalkey']],
  ])('is %s where there are %j', (expected, names) => {
    present = Object.fromEntries(names.map((name) => [name, copy()]));
    expect(anyPackage('A URL')).toBe(present[expected]);
  });

  it('has to be installed', () => {
    present = {};
    expect(() => anyPackage('A URL')).toThrow(LockConfigurationError);
    expect(() => anyPackage('A URL')).toThrow(/^A URL of option "redis" needs ioredis/);
  });
});

describe('the class that a package has for replies that are errors', () => {
  it.each<[string, (found: ReturnType<typeof copy>) => unknown]>([
    ['the package is used', () => ioredis('A URL')],
    [
      'there is a client of it',
      ({ Redis }) => {
        learnRepliesOf(new Redis() as never);
      },
    ],
    [
      'there is a client of a Cluster of it',
      ({ Cluster }) => {
        learnRepliesOf(new Cluster() as never);
      },
    ],
  ])('is known as soon as %s, and kept once', (_, use) => {
    const found = copy();
    present = { ioredis: found };
    const reply = new found.ReplyError('WRONGTYPE');
    expect(isReply(reply)).toBe(false);
    const before = REPLY_ERRORS.length;
    for (let times = 0; times < 3; times += 1) use(found);
    expect(isReply(reply)).toBe(true);
    expect(REPLY_ERRORS).toHaveLength(before + 1);
  });
});
