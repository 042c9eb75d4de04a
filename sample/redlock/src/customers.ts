import { setTimeout as sleep } from 'node:timers/promises';

/** How many want to pay the same order at once. */
export const CUSTOMERS_PER_ORDER = 3;
/** How many orders are being paid at any time. */
const ORDERS_AT_ONCE = 4;
/** What a 503 says in `Retry-After`. */
const RETRY_AFTER_MS = 1_000;

/** They pay one order after the other, each of them several times at once, at all instances of the shop. */
export class Customers {
  readonly #shops: readonly string[];
  #answers = new Map<number, number>();
  readonly #shopping: Promise<unknown>;
  #orders = 0;
  #goHome = false;

  constructor(shops: readonly string[]) {
    this.#shops = shops;
    this.#shopping = Promise.all(Array.from({ length: ORDERS_AT_ONCE }, () => this.#goShopping()));
  }

  /** How many answers of each status they got to what they asked for since this was called last. */
  answers(): ReadonlyMap<number, number> {
    const answers = this.#answers;
    this.#answers = new Map();
    return answers;
  }

  /** Whether they got an answer of each of these statuses since then. */
  had(statuses: readonly number[]): boolean {
    return statuses.every((status) => this.#answers.has(status));
  }

  /** Resolves with the number of orders, when all of them are paid. */
  async goHome(): Promise<number> {
    this.#goHome = true;
    await this.#shopping;
    return this.#orders;
  }

  async #goShopping(): Promise<void> {
    while (!this.#goHome) {
      this.#orders += 1;
      await this.#buy(String(this.#orders));
    }
  }

  /** Until one of the customers has paid it. */
  async #buy(orderId: string): Promise<void> {
    for (;;) {
      const answers = await Promise.all(
        Array.from({ length: CUSTOMERS_PER_ORDER }, (_, index) =>
          this.#pay(`${this.#shops[index % this.#shops.length] ?? ''}/orders/${orderId}/pay`),
        ),
      );
      if (answers.includes('paid')) return;
      await sleep(RETRY_AFTER_MS);
    }
  }

  async #pay(url: string): Promise<'paid' | 'not paid'> {
    const answers = this.#answers;
    const response = await fetch(url, { method: 'POST' });
    const { status } = response;
    const { code } = (await response.json()) as { readonly code?: string };
    answers.set(status, (answers.get(status) ?? 0) + 1);
    return status === 201 || code === 'ALREADY_PAID' ? 'paid' : 'not paid';
  }
}
