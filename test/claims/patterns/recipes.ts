/** The recipes of docs/recipes.md that need no application around them. Each is on the page as it is here. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Controller, Get, Injectable, Query } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock, lockKey, LockLostError, LockService, RunOnce, WithLock } from 'nestjs-holdfast';

export interface Provider {
  charge(order: string, options: { idempotencyKey: string; signal: AbortSignal }): Promise<string>;
}

export interface Cache {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
}

export abstract class SearchEngine {
  abstract find(text: string, options: { signal: AbortSignal | undefined }): Promise<string[]>;
}

export abstract class Imports {
  abstract run(): Promise<void>;
}

export abstract class Invoices {
  abstract due(): Promise<readonly string[]>;
  abstract send(invoice: string): Promise<void>;
}

// recipe
export class Payments {
  constructor(
    private readonly locks: LockService,
    private readonly provider: Provider,
  ) {}

  /** The receipt: of this call, or of the call that has paid the order before. */
  async pay(order: string): Promise<string> {
    const idempotencyKey = lockKey`pay:${order}`;
    const options = { keepDone: '1d', keepValue: true, wait: '30s' } as const;
    const { value, outcome } = await this.locks.runOnce(idempotencyKey, options, ({ signal }) =>
      this.provider.charge(order, { idempotencyKey, signal }),
    );
    if (value === undefined) throw new ConflictException(`There is no receipt: ${outcome}.`);
    return value;
  }
}
// end

// recipe
export class Prices {
  constructor(
    private readonly locks: LockService,
    private readonly cache: Cache,
    private readonly load: (sku: string) => Promise<string>,
  ) {}

  async price(sku: string): Promise<string> {
    const cached = await this.cache.get(sku);
    if (cached !== undefined) return cached;
    return this.locks.run(lockKey`price:${sku}`, { wait: '5s' }, async () => {
      const loaded = (await this.cache.get(sku)) ?? (await this.load(sku));
      await this.cache.set(sku, loaded);
      return loaded;
    });
  }
}
// end

// recipe
export class Mails {
  constructor(
    private readonly locks: LockService,
    private readonly send: (user: string) => Promise<void>,
  ) {}

  /** Whether a mail was sent: at most one in ten minutes for each user. */
  async remind(user: string): Promise<boolean> {
    const options = { ttl: '10m', release: 'on-expiry' } as const;
    const { acquired } = await this.locks.tryRun(lockKey`remind:${user}`, options, () =>
      this.send(user),
    );
    return acquired;
  }
}
// end

// recipe
export class Documents {
  constructor(
    private readonly locks: LockService,
    private readonly index: (id: string) => Promise<void>,
    private readonly quietMs = 2_000,
  ) {}

  /** Call it for each change: the document is indexed when it has not changed for two seconds. */
  async changed(id: string): Promise<void> {
    const options = { onLocked: 'replace', replaceWait: '30s' } as const;
    try {
      await this.locks.run(lockKey`index:${id}`, options, async ({ signal }) => {
        await sleep(this.quietMs, undefined, { signal }); // a newer call ends this pause
        await this.index(id);
      });
    } catch (error) {
      if (!(error instanceof LockLostError && error.reason === 'replaced')) throw error;
    }
  }
}
// end

// recipe
@Controller()
export class SearchController {
  constructor(
    private readonly locks: LockService,
    private readonly engine: SearchEngine,
  ) {}

  @Get('search')
  @WithLock('search:<user.id>', { onLocked: 'replace' })
  async search(@Query('q') text: string): Promise<string[]> {
    return this.engine.find(text, { signal: this.locks.current()?.signal });
  }
}
// end

// recipe
@Injectable()
export class NightlyImport {
  constructor(private readonly imports: Imports) {}

  @Cron('0 2 * * *', { name: 'import', timeZone: 'Europe/Berlin' })
  @RunOnce('import:<fireTime>', { attempts: 3, wait: '4h', keepDone: '1d' })
  async run(): Promise<void> {
    await this.imports.run();
  }
}
// end

// recipe
@Injectable()
export class InvoiceJob {
  constructor(
    private readonly locks: LockService,
    private readonly invoices: Invoices,
  ) {}

  @Cron('0 6 * * *', { name: 'invoices', timeZone: 'Europe/Berlin' })
  @CronLock('invoices')
  async run(): Promise<void> {
    for (const invoice of await this.invoices.due()) {
      this.locks.current()?.assertHeld(); // throws if the lock was lost
      await this.invoices.send(invoice);
    }
  }
}
// end
