import { LockService, type LockModuleOptions } from 'nestjs-holdfast';

/** The lock services of a spec, each with connections of its own, as every process of an application has one. */
export class Services {
  readonly #open: LockService[] = [];

  async open(
    redis: string | readonly string[],
    options: LockModuleOptions = {},
  ): Promise<LockService> {
    const locks = new LockService({ redis, ...options });
    this.#open.push(locks);
    await locks.open();
    return locks;
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((locks) => locks.shutdown(0)));
  }
}
