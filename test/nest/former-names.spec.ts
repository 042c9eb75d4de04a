/* eslint-disable @typescript-eslint/no-deprecated -- former names are what is tested */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  defineLock,
  LockConfigurationError,
  LockModule,
  LockService,
  type LockEvents,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { createTestLocks, LockTestingModule } from 'nestjs-holdfast/testing';
import { resolveOptions } from '../../lib/options/resolve-options.js';
import { deferred } from '../support/eventually.js';
import { closeApps, startApp } from './module/start-app.js';

const warn = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);

/** The warnings of former names since the test began. */
const warnings = (): string[] =>
  warn.mock.calls
    .filter(([, options]) => (options as { code?: string }).code === 'HOLDFAST_FORMER_NAME')
    .map(([message]) => String(message).split('. ')[0] ?? '');

beforeEach(() => {
  warn.mockClear();
});
afterEach(closeApps);

const serviceOf = async (options: Partial<LockModuleOptions> = {}): Promise<LockService> => {
  const imports = [LockModule.forRoot({ store: 'memory', ...options })];
  return (await startApp({ imports })).app.get(LockService);
};

/** The phases of one attempt. */
const EMITTED = ['began', 'ended'];

describe('a former name of an event', () => {
  it('has each event once for each listener, and one warning in the process', async () => {
    const locks = await serviceOf();
    const heard: string[] = [];
    const listener = ({ phase }: LockEvents['onceAttempt']): void => void heard.push(phase);
    const stop = locks.on('once', listener);
    locks.on('once', () => undefined)();
    await locks.runOnce('email:1', () => 1);
    expect(heard).toEqual(EMITTED);
    stop();
    await locks.runOnce('email:2', () => 1);
    expect(heard).toEqual(EMITTED);
    expect(warnings()).toEqual(['The event "once" is now called "onceAttempt"']);
    expect(warn.mock.calls[0]).toEqual([
      'The event "once" is now called "onceAttempt". The next minor version removes the former name. ' +
        'This command renames it in your code: npx @nestjs-holdfast/cli migrate src',
      { type: 'DeprecationWarning', code: 'HOLDFAST_FORMER_NAME' },
    ]);
  });

  it('is that of a lock that is handed off', async () => {
    const locks = await serviceOf({ handoff: { tenure: '20s' } });
    const [heard, waits] = [deferred<LockEvents['handedOff']>(), deferred()];
    locks.on('handedOn', heard.resolve);
    locks.on('waiting', () => {
      waits.resolve();
    });
    const first = await locks.acquire('a', { limit: 1 });
    const second = locks.acquire('a', { limit: 1 });
    await waits.promise;
    await first.release();
    await (await second).release();
    expect(await heard.promise).toMatchObject({ keys: ['a'], previousToken: first.fencingToken });
    expect(warnings()).toEqual(['The event "handedOn" is now called "handedOff"']);
  });

  it('is that of different limits', async () => {
    const locks = await serviceOf();
    const heard: unknown[] = [];
    locks.on('limitsDiffer', ({ limit, otherLimit }) => heard.push([limit, otherLimit]));
    const held = await locks.acquire('a', { limit: 2 });
    await (await locks.acquire('a', { limit: 3 })).release();
    await held.release();
    expect(heard).toEqual([[3, 2]]);
    expect(warnings()).toEqual(['The event "limitsDiffer" is now called "limitMismatch"']);
  });
});

describe('a former channel', () => {
  it('has the messages of the current one, and one warning when it has the first', async () => {
    const locks = await serviceOf();
    const [former, current]: [unknown[], unknown[]] = [[], []];
    const onFormer = (message: unknown): void => void former.push(message);
    const onCurrent = (message: unknown): void => void current.push(message);
    subscribe('holdfast:once', onFormer);
    await locks.runOnce('email:1', () => 1);
    expect(former).toMatchObject([{ phase: 'began' }, { phase: 'ended', outcome: 'completed' }]);
    subscribe('holdfast:once-attempt', onCurrent);
    unsubscribe('holdfast:once', onFormer);
    await locks.runOnce('email:2', () => 1);
    unsubscribe('holdfast:once-attempt', onCurrent);
    expect([former.length, current.length]).toEqual([2, 2]);
    expect(warnings()).toEqual(['The channel holdfast:once is now called holdfast:once-attempt']);
  });
});

describe('the option maxClockStep', () => {
  it('is fencingTokenRetention, also in options with accessors, with one warning', () => {
    class Options {
      readonly store = 'memory';
      readonly #step = '1h';
      get maxClockStep(): string {
        return this.#step;
      }
    }
    for (const given of [{ store: 'memory', maxClockStep: '1h' }, new Options()] as const)
      expect(resolveOptions(given as LockModuleOptions).fenceKeepMs).toBe(3_600_000);
    expect(resolveOptions({ store: 'memory', fencingTokenRetention: '1m' }).fenceKeepMs).toBe(
      60_000,
    );
    expect(warnings()).toEqual([
      'The option "maxClockStep" of LockModule is now called "fencingTokenRetention"',
    ]);
  });

  it('is refused beside fencingTokenRetention', async () => {
    const starting = serviceOf({ maxClockStep: '1h', fencingTokenRetention: '1h' });
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(
      'LockModule has "maxClockStep" and "fencingTokenRetention", which are two names of one option. Give "fencingTokenRetention" only.',
    );
  });

  it('is an option of tests, too', async () => {
    const { locks } = createTestLocks({ maxClockStep: '1h' });
    await locks.shutdown();
    const imports = [LockTestingModule.forRoot({ maxClockStep: '1h' })];
    const module = await Test.createTestingModule({ imports }).compile();
    expect(module.get(LockService)).toBeInstanceOf(LockService);
    await module.close();
  });
});

describe('LockService.use', () => {
  it('is for(), with one warning', async () => {
    const locks = await serviceOf();
    const orderLock = defineLock('order:<orderId>');
    expect(locks.use(orderLock)).toBe(locks.for(orderLock));
    expect(locks.use(orderLock)).toBe(locks.for(orderLock));
    expect(warnings()).toEqual(['The method LockService.use() is now called for()']);
  });
});
