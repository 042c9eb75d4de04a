import { setTimeout as sleep } from 'node:timers/promises';
import {
  BadRequestException,
  Injectable,
  NotFoundException,
  UnprocessableEntityException,
} from '@nestjs/common';
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
    if (from === to || amount <= 0)
      throw new BadRequestException('Name two accounts and a positive amount.');
    const before = [this.#balanceOf(from), this.#balanceOf(to)] as const;
    if (before[0] < amount)
      throw new UnprocessableEntityException(`${from} has ${before[0]} only.`);
    await sleep(200); // between reading and writing somebody else could get in
    this.#balances.set(from, before[0] - amount);
    this.#balances.set(to, before[1] + amount);
    return this.balances();
  }

  balances(): Record<string, number> {
    return Object.fromEntries(this.#balances);
  }

  #balanceOf(account: string): number {
    const balance = this.#balances.get(account);
    if (balance === undefined) throw new NotFoundException(`There is no account ${account}.`);
    return balance;
  }
}
