import { describe, expect, it } from '@jest/globals';
import { errorPresenter } from '../../lib/engine/present-errors.js';
import { LockKeyError, LockNotAcquiredError, type LockErrorBody } from '../../lib/errors.js';
import type { LockErrorOptions } from '../../lib/options/lock-module-options.js';
import { heldFor } from '../support/scripted-store.js';
import { scriptedEngine } from './scripted-engine.js';

function bodyOf(options: LockErrorOptions, keys: readonly string[] = ['key']) {
  const logged: unknown[][] = [];
  const log = { warn: () => undefined, error: (...said: unknown[]) => void logged.push(said) };
  const error = new LockNotAcquiredError({ keys, retryAfterMs: 5, waitedMs: 0 });
  const usual = error.getResponse();
  expect(errorPresenter(options, log)(error)).toBe(error);
  return { body: error.getResponse(), usual, logged, status: error.getStatus() };
}

describe('the body of an error', () => {
  it('is the usual one, without keys', () => {
    const { body, usual, logged } = bodyOf({});
    expect(body).toBe(usual);
    expect(body).not.toHaveProperty('keys');
    expect(logged).toEqual([]);
  });

  it('names the keys where the application wants it, and there are some', () => {
    const { body, usual } = bodyOf({ exposeKeys: true });
    expect(body).toEqual({ ...usual, keys: ['key'] });
    expect(bodyOf({ exposeKeys: false }).body).not.toHaveProperty('keys');
    expect(bodyOf({ exposeKeys: true }, []).body).not.toHaveProperty('keys');
  });

  it('is what the application makes of the usual one', () => {
    const { body, usual, status } = bodyOf({
      exposeKeys: true,
      body: ({ code, keys }, given) => ({ ...given, statusCode: 423, title: `${code} ${keys[0]}` }),
    });
    expect(body).toEqual({
      ...usual,
      keys: ['key'],
      statusCode: 423,
      title: 'LOCK_NOT_ACQUIRED key',
    });
    expect(status).toBe(423);
  });

  it('leaves the message and the detail of the error alone', () => {
    const present = (options: LockErrorOptions): LockNotAcquiredError => {
      const log = { warn: () => undefined, error: () => undefined };
      const error = new LockNotAcquiredError({ keys: ['key'], retryAfterMs: 5, waitedMs: 0 });
      return errorPresenter(options, log)(error);
    };
    const usual = present({});
    const error = present({
      body: ({ keys }, given) => ({ ...given, message: `${keys.join()} is busy` }),
    });
    expect(error.getResponse().message).toBe('key is busy');
    expect(error.message).toBe(usual.message);
    expect(error.detail).toBe(usual.detail);
    expect(JSON.parse(JSON.stringify(error))).toEqual(error.getResponse());
    expect(present({ exposeKeys: true }).message).toBe(usual.message);
    expect(present({ body: () => ({ message: 'no status' }) as never }).message).toBe(
      usual.message,
    );
  });

  it('is the usual one where the application throws, which is logged', () => {
    const fault = new Error('mine');
    const { body, usual, logged } = bodyOf({
      body: () => {
        throw fault;
      },
    });
    expect(body).toBe(usual);
    expect(logged).toEqual([['Option "errors.body" threw: the usual body is sent', fault]]);
  });

  const NO_STATUS =
    'Option "errors.body" returned no body with a "statusCode" from 200 to 599: the usual one is sent';

  it.each([
    [{}, [NO_STATUS]],
    [{ statusCode: '409' }, [NO_STATUS]],
    [{ statusCode: 409.5 }, [NO_STATUS]],
    [{ statusCode: 0 }, [NO_STATUS]],
    [{ statusCode: 100 }, [NO_STATUS]],
    [{ statusCode: 600 }, [NO_STATUS]],
    [undefined, ['Option "errors.body" threw: the usual body is sent', expect.any(TypeError)]],
  ])('is the usual one where the application makes %j of it, which is logged', (made, said) => {
    const { body, usual, logged } = bodyOf({ body: () => made as LockErrorBody });
    expect(body).toBe(usual);
    expect(logged).toEqual([said]);
  });

  it('is made once, and not of errors that are none of ours', () => {
    let made = 0;
    const log = { warn: () => undefined, error: () => undefined };
    const present = errorPresenter({ body: (_error, usual) => ({ ...usual, made: ++made }) }, log);
    const error = present(
      present(new LockNotAcquiredError({ keys: ['key'], retryAfterMs: 5, waitedMs: 0 })),
    );
    expect(error.getResponse()).toMatchObject({ made: 1 });
    const foreign = new Error('mine');
    expect(present(foreign)).toBe(foreign);
    expect(made).toBe(1);
  });

  it('is made of each error that leaves the engine', async () => {
    const { store, locks } = scriptedEngine({
      errors: { body: (_error, usual) => ({ ...usual, mine: true }) },
    });
    store.onAcquire = () => heldFor(500);
    const bodies = [
      locks.acquire('key', { wait: 0 }),
      locks.acquire(''),
      locks.inspect(''),
      locks.run('key', { wait: 0 }, () => undefined),
      Promise.resolve().then(() => {
        locks.assertHeld('key');
      }),
      Promise.resolve().then(() =>
        locks.checked(() => {
          throw new LockKeyError({ problem: 'is no key' });
        }),
      ),
    ].map((call) =>
      call.then(
        () => undefined,
        (error: unknown) => (error as LockKeyError).getResponse(),
      ),
    );
    for (const body of await Promise.all(bodies)) expect(body).toMatchObject({ mine: true });
  });
});
