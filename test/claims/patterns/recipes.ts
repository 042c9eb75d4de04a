import type { LockService } from 'nestjs-holdfast';

export interface Provider {
  charge(order: string, options: { idempotencyKey: string; signal: AbortSignal }): Promise<string>;
}

export interface Database {
  transaction(work: () => Promise<void>): Promise<void>;
  move(amount: number): Promise<void>;
}

export interface Cache {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
}

// recipe
export class Payments {
  constructor(
    private readonly locks: LockService,
    private readonly provider: Provider,
  ) {}

  /** The receipt: of this call, or of the call that has paid the order before. */
  async pay(order: string): Promise<string | undefined> {
    const idempotencyKey = `pay:${order}`;
    const options = { keepDone: '1d', keepValue: true, wait: '30s' } as const;
    const { value } = await this.locks.runOnce(idempotencyKey, options, ({ signal }) =>
      this.provider.charge(order, { idempotencyKey, signal }),
    );
    return value;
  }
}

// recipe
export class Transfers {
  constructor(
    private readonly locks: LockService,
    private readonly database: Database,
  ) {}

  /** The lock is outside: it is released after the transaction has been committed. */
  async transfer(from: string, to: string, amount: number): Promise<void> {
    await this.locks.run([`account:${from}`, `account:${to}`], async ({ signal }) => {
      await this.database.transaction(async () => {
        await this.database.move(amount);
        signal.throwIfAborted(); // rolls back if the lock was lost
      });
    });
  }
}

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
    return this.locks.run(`price:${sku}`, { wait: '5s' }, async () => {
      const loaded = (await this.cache.get(sku)) ?? (await this.load(sku));
      await this.cache.set(sku, loaded);
      return loaded;
    });
  }
}

// recipe
export class Mails {
  constructor(
    private readonly locks: LockService,
    private readonly send: (user: string) => Promise<void>,
  ) {}

  /** At most one mail in ten minutes for each user: the key stays taken after the work. */
  async remind(user: string): Promise<boolean> {
    const options = { ttl: '10m', release: 'on-expiry' } as const;
    const { acquired } = await this.locks.tryRun(`remind:${user}`, options, () => this.send(user));
    return acquired;
  }
}
