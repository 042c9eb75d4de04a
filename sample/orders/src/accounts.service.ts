import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';

@Injectable()
export class AccountsService {
  readonly #balances = new Map([
    ['alice', 100],
    ['bob', 100],
  ]);

  /** Both accounts or none, in one order for everybody: transfers in both directions cannot wait for each other. */
  @WithLock(['account:<from>', 'account:<to>'], { wait: '5s' })
  async transfer(from: string, to: string, amount: number): Promise<Record<string, number>> {
    const before = [this.#balances.get(from) ?? 0, this.#balances.get(to) ?? 0] as const;
    await sleep(200); // between reading and writing somebody else could get in
    this.#balances.set(from, before[0] - amount);
    this.#balances.set(to, before[1] + amount);
    return this.balances();
  }

  balances(): Record<string, number> {
    return Object.fromEntries(this.#balances);
  }
}
