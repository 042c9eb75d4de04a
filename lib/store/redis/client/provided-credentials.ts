import { textOf } from '../../../errors/describe.js';
import type { Runtime } from '../../../time/runtime.js';
import type { CredentialsProvider, RedisCredentials } from './client-library.js';

/** The longest that the function of the application may take. */
const LONGEST_MS = 10_000;

/** Asks the function of the application what to log in with. Rejects with what is wrong with it. */
export const provided = async (
  provide: CredentialsProvider,
  runtime: Runtime,
): Promise<RedisCredentials> => checked(await inTime(Promise.resolve().then(provide), runtime));

/** What a connection reports when the function has failed. */
export function credentialsProblem(error: unknown): Error {
  return new Error(`option "credentials": ${textOf(error)}`, { cause: error });
}

function checked(given: RedisCredentials): RedisCredentials {
  const { password, ...others } = (given as Partial<RedisCredentials> | null | undefined) ?? {};
  if (password === undefined) throw wrong('no password');
  if (typeof password !== 'string') throw wrong('a password that is no text');
  if (password === '') throw wrong('an empty password');
  for (const name of ['username', 'sentinelUsername', 'sentinelPassword'] as const)
    if (typeof (others[name] ?? '') !== 'string') throw wrong(`a ${name} that is no text`);
  return given;
}

/** Never what it returned: that may be a secret. */
const wrong = (what: string): Error =>
  new Error(`returned ${what}. It must return { username, password }`);

function inTime<T>(promise: Promise<T>, runtime: Runtime): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = runtime.setTimer(
      () => {
        reject(new Error(`returned nothing within ${String(LONGEST_MS)} ms`));
      },
      LONGEST_MS,
      'background',
    );
    promise.then(resolve, reject).finally(cancel);
  });
}
