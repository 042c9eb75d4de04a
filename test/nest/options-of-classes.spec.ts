import { Injectable, Module } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { defineLock, Leader, LockModule, LockService, RunOnce, WithLock } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { eventually } from '../support/eventually.js';
import { closeApps, startApp } from './module/start-app.js';

/** As a validated configuration may be: its options are accessors of its prototype. */
class Configuration {
  get ttl() {
    return '10m' as const;
  }
}

const configuration = new Configuration();
const orderLock = defineLock('order', configuration);
const plainLock = defineLock('plain');

afterEach(closeApps);

describe('options that an object inherits count', () => {
  const { locks } = createTestLocks();
  const left = (): number | undefined => locks.current()?.remainingMs;

  class Worker {
    @WithLock('one', configuration)
    async withLock(): Promise<number | undefined> {
      return left();
    }

    @WithLock('two', Object.create({ ttl: '10m' }) as Configuration)
    async created(): Promise<number | undefined> {
      return left();
    }

    @RunOnce('three', configuration)
    async once(): Promise<number | undefined> {
      return left();
    }

    @plainLock.WithLock(configuration)
    async defined(): Promise<number | undefined> {
      return left();
    }
  }

  const worker = locks.bind(new Worker());

  it.each([
    ['@WithLock', () => worker.withLock()],
    ['@WithLock, by Object.create', () => worker.created()],
    ['@RunOnce', () => worker.once()],
    ['the decorator of a definition', () => worker.defined()],
    ['defineLock', () => locks.for(orderLock).run(left)],
    ['a call of a defined lock', () => locks.for(plainLock).run(configuration, left)],
    [
      'runOnce',
      async () => {
        let remaining: number | undefined;
        await locks.runOnce('four', configuration, () => (remaining = left()));
        return remaining;
      },
    ],
    ['tryRun', async () => Object(await locks.tryRun('five', configuration, left)).value],
    ['a limiter', () => locks.limiter('six', { limit: 2 }).run(configuration, left)],
    ['bind', () => locks.bind(new Bare(), configuration).work(left)],
  ])('for %s', async (_what, work) => {
    expect(await work()).toBeGreaterThan(300_000);
  });

  it('for forFeature', async () => {
    @Module({ imports: [LockModule.forFeature(configuration)], providers: [Bare] })
    class Feature {}
    const { app } = await startApp({ imports: [LockModule.forRoot({ store: 'memory' }), Feature] });
    const service = app.get(LockService);
    const remaining = app.get(Bare, { strict: false }).work(() => service.current()?.remainingMs);
    expect(await remaining).toBeGreaterThan(300_000);
  });

  it('for @Leader', async () => {
    @Injectable()
    class Mailbox {
      @Leader('mailbox', configuration)
      lead(): void {
        // It stays the leader.
      }
    }
    const { app } = await startApp({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Mailbox],
    });
    const locked = () => app.get(LockService).inspect('mailbox');
    await eventually(async () => (await locked()).held);
    const { remainingMs } = (await locked()) as { readonly remainingMs?: number };
    expect(remainingMs).toBeGreaterThan(300_000);
  });
});

@Injectable()
class Bare {
  @WithLock('bare')
  async work(left: () => number | undefined): Promise<number | undefined> {
    return left();
  }
}
