import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { LockModule, type LockModuleOptions } from 'nestjs-holdfast';
import { LockService } from 'nestjs-holdfast';
import { closeApps, startApp } from './start-app.js';

const { NODE_ENV } = process.env;
const said: string[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: string) => void said.push(text));
});

afterEach(async () => {
  await closeApps();
  said.length = 0;
});

afterAll(() => {
  jest.restoreAllMocks();
});

async function startIn(environment: string, options: LockModuleOptions): Promise<LockService> {
  process.env.NODE_ENV = environment;
  const { app } = await startApp({ imports: [LockModule.forRoot(options)] });
  process.env.NODE_ENV = NODE_ENV;
  return app.get(LockService);
}

const ONLY_HERE =
  'Locks are kept in the memory of this process only, and NODE_ENV is "production": a second process would get the same lock at the same ' +
  'time. Give redis: \'redis://…\' instead of "store".';

describe('locks in memory with NODE_ENV=production', () => {
  it('HF-39 are warned of at the start and in the health', async () => {
    const locks = await startIn('production', { store: 'memory' });
    expect(said).toEqual([ONLY_HERE]);
    expect(await locks.health()).toMatchObject({ hasQuorum: true, warning: ONLY_HERE });
    expect(await locks.healthWithin(1_000)).toMatchObject({ warning: ONLY_HERE });
  });

  it.each(['development', 'test'])('are what they should be in %s', async (environment) => {
    const locks = await startIn(environment, { store: 'memory' });
    expect(said).toEqual([]);
    expect(await locks.health()).not.toHaveProperty('warning');
  });
});
