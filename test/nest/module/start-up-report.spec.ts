import { Injectable, type DynamicModule, type LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
import {
  defineLock,
  LockModule,
  RunOnce,
  WithLock,
  type LockFeatureOptions,
  type LockModuleOptions,
} from 'nestjs-holdfast';

const stock = defineLock('stock:<id>', { wait: 'forever' });

@Injectable()
class Orders {
  @WithLock('order:<id>')
  async pay(id: string): Promise<string> {
    return id;
  }

  @WithLock(['order:<id>', 'all'], { onLocked: 'skip', ttl: '5s' })
  async ship(id: string): Promise<string | undefined> {
    return id;
  }

  @WithLock((id: string) => `order:${id}`, { wait: '2s', onLocked: () => 'later' })
  async cancel(id: string): Promise<string> {
    return id;
  }

  @RunOnce('invoice:<id>')
  async invoice(id: string): Promise<string | undefined> {
    return id;
  }

  @stock.WithLock()
  async count(id: string): Promise<string> {
    return id;
  }
}

@Injectable()
class Jobs {
  @WithLock('job', { instance: 'jobs' })
  async run(): Promise<void> {}
}

/** What is logged at the start. */
async function debugLines(
  options: Partial<LockModuleOptions>,
  feature?: LockFeatureOptions,
  others: readonly DynamicModule[] = [],
): Promise<readonly string[]> {
  const lines: string[] = [];
  const ignore = (): void => undefined;
  const debug = (text: unknown, context: unknown): void => {
    if (context === 'Holdfast') lines.push(String(text));
  };
  const logger: LoggerService = { log: ignore, warn: ignore, error: ignore, debug };
  const imports = [
    LockModule.forRoot({ store: 'memory', ...options }),
    ...(feature === undefined ? [] : [LockModule.forFeature(feature)]),
    ...others,
  ];
  const providers = others.length === 0 ? [Orders] : [Orders, Jobs];
  const app = await Test.createTestingModule({ imports, providers }).setLogger(logger).compile();
  await app.init();
  await app.close();
  return lines;
}

describe('the log of the start', () => {
  it('has a line for each locked method at the level of debugging', async () => {
    expect(await debugLines({})).toEqual([
      'Calls by hand wait 10s, with a TTL of 30s.',
      'Orders.pay locks "order:<id>": does not wait, TTL 30s; while the key is held, calls fail with LockNotAcquiredError.',
      'Orders.ship locks "order:<id>", "all": does not wait, TTL 5s; while the key is held, calls are skipped.',
      'Orders.cancel locks what its key function returns: waits 2s, TTL 30s; while the key is held, calls return what onLocked returns.',
      'Orders.invoice locks "invoice:<id>": waits 10s, TTL 30s; while the key is held, calls fail with LockNotAcquiredError.',
      'Orders.count locks "stock:<id>": waits without a limit, TTL 30s; while the key is held, calls fail with LockNotAcquiredError.',
    ]);
  });

  it('says what the module and the feature say', async () => {
    const lines = await debugLines({ wait: '3s' }, { keyPrefix: 'shop:', ttl: '1m' });
    expect(lines.slice(0, 2)).toEqual([
      'Calls by hand wait 3s, with a TTL of 30s.',
      'Orders.pay locks "shop:order:<id>": waits 3s, TTL 1m; while the key is held, calls fail with LockNotAcquiredError.',
    ]);
    expect(lines.filter((line) => line.startsWith('Orders.count'))).toEqual([
      expect.stringContaining('locks "stock:<id>"'),
    ]);
  });

  it('has the methods of each service once', async () => {
    const lines = await debugLines({}, undefined, [
      LockModule.forRoot({ store: 'memory', name: 'jobs', ttl: '7s' }),
    ]);
    expect(lines.filter((line) => line.startsWith('Jobs.'))).toEqual([
      expect.stringContaining('Jobs.run locks "job": does not wait, TTL 7s'),
    ]);
  });
});
