/** Work that the end of a service waits for, even if other code waits for it too. */
export class PendingTasks {
  #count = 0;
  #whenSettled: (() => void)[] = [];

  /** Returns the promise. */
  add<T>(promise: Promise<T>): Promise<T> {
    this.begin();
    promise.then(this.end, this.end);
    return promise;
  }

  /** Work begins that is no promise. Call `end` when it is over. */
  begin(): void {
    this.#count += 1;
  }

  readonly end = (): void => {
    this.#count -= 1;
    for (const resolve of this.#whenSettled.splice(0)) resolve();
  };

  /** Resolves when nothing is under way, also of what was added meanwhile. */
  async settled(): Promise<void> {
    while (this.#count > 0) {
      await new Promise<void>((resolve) => this.#whenSettled.push(resolve));
    }
  }
}
