import { Test } from '@nestjs/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  getLockServiceToken,
  LockModule,
  LockService,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { storeOption } from '../../../lib/options/location.js';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { MemoryDriver } from '../../driver/memory-driver.js';
import { ChildScript } from '../../support/child-script.js';
import { VirtualRuntime } from '../../support/virtual-runtime.js';

const NOBODY_LISTENS =
  'Nothing in this process listens for SIGTERM or SIGINT. When it is stopped, its locks stay taken until their TTL is over. ' +
  'Call app.enableShutdownHooks() in main.ts.';

const { NODE_ENV } = process.env;
const open: INestApplicationContext[] = [];
let clock: VirtualRuntime;
let warnings: string[];

beforeEach(() => {
  process.env.NODE_ENV = 'production';
  clock = new VirtualRuntime();
  warnings = [];
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
  process.env.NODE_ENV = NODE_ENV;
});

const driver = (): LockModuleOptions => ({
  store: new MemoryDriver(new Map(), () => clock.now().monotonicMs),
});

/** Starts an application with a service of these options, and with those of further names. */
async function start(options = driver(), ...names: string[]): Promise<INestApplicationContext> {
  const registrations = [undefined, ...names];
  const testing = Test.createTestingModule({
    imports: registrations.map((name) => LockModule.forRoot({ name, store: 'memory' })),
  });
  for (const name of registrations)
    testing
      .overrideProvider(getLockServiceToken(name))
      .useValue(new LockService(options, { name, runtime: clock }));
  const record = (message: unknown): void => {
    warnings.push(String(message));
  };
  const ignore = (): void => undefined;
  const app = await testing.setLogger({ log: ignore, warn: record, error: record }).compile();
  await app.init();
  open.push(app);
  return app;
}

const lock = (app: INestApplicationContext, name?: string): Promise<void> =>
  app.get<LockService>(getLockServiceToken(name)).run('order:42', () => undefined);

describe('a process that no code ends in order', () => {
  it('is warned of once, at the first lock that it takes later than 10 s after its start', async () => {
    const app = await start();
    await clock.advance(9_999);
    await lock(app);
    expect(warnings).toEqual([]);
    await clock.advance(1);
    expect(warnings).toEqual([]);
    await lock(app);
    expect(warnings).toEqual([NOBODY_LISTENS]);
    await lock(app);
    expect(warnings).toEqual([NOBODY_LISTENS]);
  });

  it('is warned of once for each application, however many services it has', async () => {
    const [app, other] = [await start(driver(), 'jobs'), await start()];
    await clock.advance(10_000);
    await lock(app);
    await lock(app, 'jobs');
    expect(warnings).toEqual([NOBODY_LISTENS]);
    await lock(other);
    expect(warnings).toEqual([NOBODY_LISTENS, NOBODY_LISTENS]);
  });

  it('is not warned of with shutdown hooks, also if they are enabled after the start', async () => {
    const app = await start();
    await lock(app);
    app.enableShutdownHooks();
    await clock.advance(10_000);
    await lock(app);
    expect(warnings).toEqual([]);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('is not warned of with a handler of %s', async (name) => {
    const app = await start();
    const handler = (): void => undefined;
    process.on(name, handler);
    await clock.advance(10_000);
    await lock(app);
    process.off(name, handler);
    await lock(app);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['in memory', (): LockModuleOptions => ({ store: 'memory' })],
    ['of tests', (): LockModuleOptions => ({ store: storeOption(new MemoryLockStore(clock)) })],
  ])('is not warned of with locks %s, which end with it', async (_where, options) => {
    process.env.NODE_ENV = 'development';
    const app = await start(options());
    await clock.advance(10_000);
    await lock(app);
    expect(warnings).toEqual([]);
  });

  it('is warned of in the process itself, and not in its worker threads, which get no signals', async () => {
    const script = new ChildScript(new URL('unhandled-signals-process.ts', import.meta.url), []);
    expect(JSON.parse(await script.output)).toEqual({ ofProcess: [NOBODY_LISTENS], ofWorker: [] });
  }, 30_000);

  it('is not warned of in tests', async () => {
    process.env.NODE_ENV = 'test';
    const app = await start();
    await clock.advance(10_000);
    await lock(app);
    expect(warnings).toEqual([]);
  });
});
