/** What the lock protects: it keeps the largest fencing token that it has seen, and refuses smaller ones (docs/by-hand.md). */
export class Database {
  #newestToken = 0;

  write(token: number): { readonly isAccepted: boolean; readonly newestToken: number } {
    const isAccepted = token >= this.#newestToken;
    if (isAccepted) this.#newestToken = token;
    return { isAccepted, newestToken: this.#newestToken };
  }
}
