import { describe, expect, it } from '@jest/globals';
import type { RedisCredentials } from '../../lib/store/redis/client/client-library.js';
import { credentialsProblem, provided } from '../../lib/store/redis/client/provided-credentials.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

describe('what the option "credentials" returns', () => {
  it.each<[unknown, string]>([
    [undefined, 'returned no password'],
    [null, 'returned no password'],
    [{ username: 'user' }, 'returned no password'],
    [{ password: 42 }, 'returned the password 42'],
    [{ password: null }, 'returned the password null'],
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
  });
});
