import { describe, expect, it } from '@jest/globals';
import type { LockDriver } from 'nestjs-holdfast';
import { driverSuite } from 'nestjs-holdfast/testing';
import { MemoryDriver, type Leases } from './memory-driver.js';

class UnreachableDriver implements LockDriver {
  acquire = () => Promise.reject(new Error('connect ECONNREFUSED'));
  extend = () => Promise.reject(new Error('connect ECONNREFUSED'));
  release = (): Promise<never> => {
    throw new Error('connect ECONNREFUSED');
  };
}

type Opens = Partial<Parameters<typeof driverSuite>[0]>;

function suiteOf(opens: Opens) {
  const leases: Leases = new Map();
  const open = () => new MemoryDriver(leases);
  return driverSuite({ open, openUnreachable: () => new UnreachableDriver(), ...opens });
}

/** The names of the checks of a sort that drivers of a kind fail. */
async function failedBy(opens: Opens, which = /^/): Promise<readonly string[]> {
  const failed: string[] = [];
  const checks = suiteOf(opens).filter(({ name }) => which.test(name));
  await Promise.all(
    checks.map(async ({ name, check }) => {
      await check().catch((error: unknown) => {
        expect(String(error)).toMatch(/^Error: A LockDriver failed its check: .+\.$/);
        failed.push(name);
      });
    }),
  );
  return failed;
}

describe('the suite for drivers', () => {
  it.each(suiteOf({}))('passes a driver that $name', ({ check }) => check());

  it('passes a driver whose database takes an empty text for none, as Oracle does', async () => {
    const shared: Leases = new Map();
    class Oracle extends MemoryDriver {
      override async acquire(key: string, token: string, ttlMs: number) {
        if (token === '') throw new Error('ORA-01400: cannot insert NULL into (LOCKS.TOKEN)');
        return super.acquire(key, token, ttlMs);
      }
    }
    expect(await failedBy({ open: () => new Oracle(shared) })).toEqual([]);
  });

  /** A driver that others of its database do not see. */
  it('fails a driver whose locks are its own', async () => {
    expect(await failedBy({ open: () => new MemoryDriver() })).toContain(
      'grants a key to one of many that ask at once, and to the next after each release',
    );
  });

  /** What drivers do wrong, and the check that notices. */
  const MISTAKES: readonly [
    name: string,
    check: RegExp,
    Driver: new (leases: Leases) => LockDriver,
  ][] = [
    [
      'reads before it writes',
      /one of many/,
      class extends MemoryDriver {
        override async acquire(key: string, token: string, ttlMs: number) {
          const lease = this.leases.get(key);
          await new Promise(setImmediate);
          if (lease !== undefined) return { status: 'held', remainingMs: 1 } as const;
          this.leases.delete(key);
          return super.acquire(key, token, ttlMs);
        }
      },
    ],
    [
      'refuses a request that its client has sent twice',
      /again to the token/,
      class extends MemoryDriver {
        override async acquire(key: string, token: string, ttlMs: number) {
          if (this.leases.get(key)?.token === token)
            return { status: 'held', remainingMs: 1 } as const;
          return super.acquire(key, token, ttlMs);
        }
      },
    ],
    [
      'tells a time as a text',
      /what is left/,
      class extends MemoryDriver {
        override async acquire(key: string, token: string, ttlMs: number) {
          const reply = await super.acquire(key, token, ttlMs);
          if (reply.status === 'acquired') return reply;
          return { ...reply, remainingMs: `${reply.remainingMs}` as unknown as number };
        }
      },
    ],
    [
      'compares without case',
      /case/,
      class extends MemoryDriver {
        override acquire(key: string, token: string, ttlMs: number) {
          return super.acquire(key, token.toLowerCase(), ttlMs);
        }
        override extend(key: string, token: string, ttlMs: number) {
          return super.extend(key, token.toLowerCase(), ttlMs);
        }
      },
    ],
    [
      'takes keys for one that are written alike',
      /keys apart/,
      class extends MemoryDriver {
        override acquire(key: string, token: string, ttlMs: number) {
          return super.acquire(key.normalize(), token, ttlMs);
        }
      },
    ],
    [
      'cuts long keys',
      /keys apart/,
      class extends MemoryDriver {
        override acquire(key: string, token: string, ttlMs: number) {
          return super.acquire(key.slice(0, 255), token, ttlMs);
        }
      },
    ],
    [
      'cuts long keys, always',
      /keys apart/,
      class extends MemoryDriver {
        override acquire(key: string, token: string, ttlMs: number) {
          return super.acquire(key.slice(0, 1_024), token, ttlMs);
        }
        override extend(key: string, token: string, ttlMs: number) {
          return super.extend(key.slice(0, 1_024), token, ttlMs);
        }
        override release(key: string, token: string) {
          return super.release(key.slice(0, 1_024), token);
        }
      },
    ],
    [
      'does not reply',
      /^grants a free key/,
      class extends MemoryDriver {
        override acquire() {
          return new Promise<never>(() => undefined);
        }
      },
    ],
    [
      'returns nothing to another process',
      /^shortens/,
      class extends MemoryDriver {
        override async acquire(key: string, token: string, ttlMs: number) {
          const reply = await super.acquire(key, token, ttlMs);
          return token === 'next' ? (undefined as never) : reply;
        }
      },
    ],
    [
      'releases for any token',
      /^extends and releases nothing/,
      class extends MemoryDriver {
        override async release(key: string) {
          return { status: this.leases.delete(key) ? 'released' : 'not-held' } as const;
        }
      },
    ],
    [
      'knows no end',
      /^frees a key when its lease is over/,
      class extends MemoryDriver {
        override acquire(key: string, token: string) {
          return super.acquire(key, token, Infinity);
        }
      },
    ],
    [
      'ends a lease too early',
      /and not before/,
      class extends MemoryDriver {
        override acquire(key: string, token: string, ttlMs: number) {
          return super.acquire(key, token, ttlMs - 100);
        }
      },
    ],
    [
      'adds to a lease instead',
      /^shortens/,
      class extends MemoryDriver {
        override extend(key: string, token: string, ttlMs: number) {
          const { untilMs } = this.leases.get(key) ?? { untilMs: 0 };
          return super.extend(key, token, Math.max(ttlMs, untilMs - performance.now()));
        }
      },
    ],
    [
      'does not extend',
      /^extends a lease/,
      class extends MemoryDriver {
        override async extend(key: string, token: string) {
          const isHeld = this.leases.get(key)?.token === token;
          return { status: isHeld ? 'extended' : 'lost' } as const;
        }
      },
    ],
    [
      'revives a lease that is over',
      /^neither extends/,
      class extends MemoryDriver {
        override async extend(key: string, token: string, ttlMs: number) {
          if (this.leases.get(key)?.token !== token) return { status: 'lost' } as const;
          this.leases.set(key, { token, untilMs: performance.now() + ttlMs });
          return { status: 'extended' } as const;
        }
      },
    ],
  ];

  it.each(MISTAKES)('fails a driver that %s', async (_name, check, Driver) => {
    const shared: Leases = new Map();
    expect(await failedBy({ open: () => new Driver(shared) }, check)).toHaveLength(1);
  });

  it('fails a driver that does not reply while its database is not reachable', async () => {
    class Hangs implements LockDriver {
      acquire = () => new Promise<never>(() => undefined);
      extend = this.acquire;
      release = this.acquire;
    }
    expect(await failedBy({ openUnreachable: () => new Hangs() })).toEqual([
      expect.stringMatching(/^rejects/),
    ]);
  });

  it('fails a driver that takes an outage for a refusal', async () => {
    class Swallows extends MemoryDriver {
      override async acquire() {
        return { status: 'held', remainingMs: 0 } as const;
      }
    }
    expect(await failedBy({ openUnreachable: () => new Swallows() })).toEqual([
      expect.stringMatching(/^rejects/),
    ]);
  });
});
