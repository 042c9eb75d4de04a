import { afterEach, describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError } from 'nestjs-holdfast';
import { CallSites, withStackOf } from '../../lib/lease/call-site.js';
import { scriptedService } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const refusal = (): LockNotAcquiredError =>
  new LockNotAcquiredError({ keys: ['key'], retryAfterMs: 1, waitedMs: 0 });

describe('places that locks are asked for at', () => {
  /** How many of so many calls in the same moment are recorded. */
  const recorded = (sites: CallSites, calls: number): number =>
    Array.from({ length: calls }, () => sites.here(0)).filter((site) => site !== undefined).length;

  it('are recorded for 50 calls at once', async () => {
    const clock = new VirtualRuntime();
    await clock.advance(1_000);
    expect(recorded(new CallSites(clock), 60)).toBe(50);
  });

  it('are recorded 20 times a second after that', async () => {
    const clock = new VirtualRuntime();
    const sites = new CallSites(clock);
    recorded(sites, 60);
    await clock.advance(50);
    expect(recorded(sites, 10)).toBe(1);
    await clock.advance(1_000);
    expect(recorded(sites, 60)).toBe(20);
  });

  it('are recorded no more often because there was nothing to do for hours', async () => {
    const clock = new VirtualRuntime();
    const sites = new CallSites(clock);
    recorded(sites, 60);
    await clock.advance(3_600_000);
    expect(recorded(sites, 60)).toBe(50);
  });
});

describe('a stack that is too short', () => {
  const { stackTraceLimit } = Error;
  afterEach(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });

  it('does not say where the application called', () => {
    const sites = new CallSites(new VirtualRuntime());
    Error.stackTraceLimit = 1;
    const site = sites.here(1);
    expect(site).toBeDefined();
    expect(site?.place).toBeUndefined();
  });

  it('leaves an error its own', () => {
    const sites = new CallSites(new VirtualRuntime());
    Error.stackTraceLimit = 0;
    const site = sites.here(0);
    Error.stackTraceLimit = stackTraceLimit;
    const error = refusal();
    const own = error.stack;
    expect(own).toContain('    at ');
    expect(withStackOf(error, site).stack).toBe(own);
  });
});

describe('the stack of an error', () => {
  it('is its own when the call was not recorded', async () => {
    const { store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const stacks: (string | undefined)[] = [];
    for (let call = 0; call < 52; call += 1) {
      const error: unknown = await locks
        .acquire('key', { wait: 0 })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockNotAcquiredError);
      stacks.push((error as Error).stack);
    }
    expect(stacks[49]).toContain('recorded-sites.spec');
    expect(stacks[51]).toContain('lock-queue');
  });

  it('is its own when it is the reason that the application gave its signal', async () => {
    const { store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const controller = new AbortController();
    const waiting = locks.acquire('key', { signal: controller.signal });
    const reason = new Error('enough');
    const { stack } = reason;
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(reason.stack).toBe(stack);
  });

  it('may be replaced again and again, and by a property of another kind', () => {
    const error = withStackOf(refusal(), new CallSites(new VirtualRuntime()).here(0));
    error.stack = 'first';
    error.stack = 'second';
    expect(error.stack).toBe('second');
    Object.defineProperty(error, 'stack', { get: () => 'third' });
    expect(error.stack).toBe('third');
  });
});
