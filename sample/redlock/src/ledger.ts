import { setTimeout as sleep } from 'node:timers/promises';

/** The shop's database. It keeps nobody from paying twice: the lock has to. */
export class Ledger {
  readonly #payments = new Map<string, number>();

  async isPaid(orderId: string): Promise<boolean> {
    await sleep(2);
    return this.#payments.has(orderId);
  }

  async addPayment(orderId: string): Promise<void> {
    await sleep(2);
    this.#payments.set(orderId, (this.#payments.get(orderId) ?? 0) + 1);
  }

  get paid(): number {
    return this.#payments.size;
  }

  get paidTwice(): number {
    return [...this.#payments.values()].filter((times) => times > 1).length;
  }
}
