import { LockKeyError } from '../errors.js';
import { checkKey } from './check-key.js';
import { encodeKeyValue } from './encode.js';
import { separate } from './separators.js';

/**
 * Makes a key by hand from values that you do not control. The text stays as it is, the values are encoded so that none can
 * forge another key: with `lockKey`, `'42:items'` locks `order:42%3Aitems`.
 *
 * ```ts
 * await locks.run(lockKey`order:${orderId}:item:${itemId}`, work);
 * ```
 *
 * It makes the same key as the template of `@WithLock` that has the same text around the same values.
 *
 * @throws LockKeyError when a value is undefined, null, empty, NaN, an object or the like, or when two values have nothing
 *   between them that keeps them apart
 */
export function lockKey(texts: TemplateStringsArray, ...values: readonly unknown[]): string {
  const separation = separate(texts);
  if ('problem' in separation)
    throw new LockKeyError({ problem: `lockKey: ${separation.problem}` });
  const [first = '', ...rest] = texts;
  const key = rest.reduce((made, text, index) => {
    const what = `lockKey: the value after ${JSON.stringify(texts[index])}`;
    return made + encodeKeyValue(values[index], what, separation) + text;
  }, first);
  return checkKey(key);
}
