import { LockConfigurationError } from '../../errors.js';
import { describe } from '../../errors/describe.js';

/** What TypeScript checks of the key of a decorator: JavaScript passes anything. */
export function refuseNoKey(where: string, key: unknown, called: string): void {
  if (typeof key === 'function' || typeof key === 'string') return;
  if (Array.isArray(key) && key.length > 0) {
    const at = (key as unknown[]).findIndex((each) => typeof each !== 'string');
    if (at === -1) return;
    throw new LockConfigurationError(
      `${where} has a list of keys with ${describe(key[at])} in it. A list holds templates; a function takes the place of the whole list.`,
    );
  }
  if (key === undefined || Array.isArray(key)) {
    throw new LockConfigurationError(
      `${where} has no key. Name what to lock: ${called}('order:<orderId>').`,
    );
  }
  throw new LockConfigurationError(
    `${where} needs its key as the first argument, received ${describe(key)}. Options come second: ` +
      `${called}('order:<orderId>', { wait: '5s' }).`,
  );
}

/** What to write instead of options that are no object. */
export function optionsRemedy(options: unknown, called: string): string {
  const mayBeKey = called === '@WithLock' && typeof options !== 'number';
  const several = mayBeKey ? ` Several keys are one list: ${called}(['a', 'b']).` : '';
  return `Write ${called}('order:<orderId>', { wait: '5s' }).${several}`;
}
