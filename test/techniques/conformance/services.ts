import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';
import type { Backend, StoredKey } from './suite.js';

/** The last fencing token of a key outlives its leases, for a time. */
export const FENCE = /fence\}?$/;

/** The services of one `describe`, on a backend that is opened once. */
export class Services {
  readonly #open: () => Promise<Backend>;
  #backend: Backend | undefined;
  #services: LockService[] = [];

  constructor(open: () => Promise<Backend>) {
    this.#open = open;
  }

  get backend(): Backend {
    if (this.#backend === undefined) throw new Error('The backend is opened before the tests.');
    return this.#backend;
  }

  /** Those of this test. */
  get all(): readonly LockService[] {
    return this.#services;
  }

  async start(): Promise<void> {
    this.#backend = await this.#open();
  }

  async newService(options: Partial<LockModuleOptions> = {}): Promise<LockService> {
    const service = new LockService({ ...this.backend.options, ...options });
    this.#services.push(service);
    await service.open();
    return service;
  }

  /** What is stored, or what of it has that in its name; nothing where one cannot look. */
  async stored(part = ''): Promise<readonly StoredKey[]> {
    const all = (await this.backend.storedKeys?.()) ?? [];
    return all.filter(({ name }) => name.includes(part));
  }

  async shutDown(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.shutdown(0)));
    this.#services = [];
  }
}

/** After each test all of them are shut down, and nothing is left but names that may stay, for a time. */
export function servicesOn(open: () => Promise<Backend>, mayStay = FENCE): Services {
  const services = new Services(open);

  beforeAll(async () => {
    Logger.overrideLogger(false); // lost locks are a subject of these tests
    await services.start();
  }, 60_000);

  afterAll(() => services.backend.close(), 60_000);

  afterEach(async () => {
    await services.shutDown();
    for (const { name, ttlMs } of await services.stored()) {
      expect(name).toMatch(mayStay);
      expect(ttlMs).toBeGreaterThan(0);
    }
  });

  return services;
}
