import { describe, expect, it } from '@jest/globals';
import type { RedisCredentials } from '../../lib/store/redis/client/client-library.js';
import { credentialsProblem, provided } from '../../lib/store/redis/client/provided-credentials.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

describe('what the option "credentials" returns', () => {
  it.each<[unknown, string]>([
    [undefined, 'returned no password'],
    [null, 'returned no password'],
    [{ username: 'user' }, 'returned no password'],
    [{ password: '' }, 'returned an empty password'],
    [{ password: 42 }, 'returned a password that is no text'],
    [{ password: null }, 'returned a password that is no text'],
    [{ username: {}, password: 'secret' }, 'returned a username that is no text'],
    [{ password: 'secret', sentinelPassword: 7 }, 'returned a sentinelPassword that is no text'],
  ])('has to have a password: %j', async (given, problem) => {
    const runtime = new VirtualRuntime();
    const asked = provided(() => given as RedisCredentials, runtime);
    await expect(asked).rejects.toThrow(`${problem}. It must return { username, password }`);
    expect(runtime.timers).toBe(0);
  });

  it('is named with what failed, which is the cause', () => {
    const error = new Error('no token');
    const problem = credentialsProblem(error);
    expect(problem.message).toBe('option "credentials": no token');
    expect(problem.cause).toBe(error);
    expect(credentialsProblem(Object.create(null)).message).toBe(
      'option "credentials": an error without text',
    );
  });
});
