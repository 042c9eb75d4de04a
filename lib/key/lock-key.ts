import { LockKeyError } from '../errors.js';
import { checkKey } from './check-key.js';
import { encodeKeyValue, separate } from './encode.js';

/**
 * Makes a key by hand from values that you do not control. The text stays as it is. The values are encoded so that none
 * can forge another key: `'42:items'` becomes `42%3Aitems`.
 *
 * It makes the same key as a template of `@WithLock` with the same text around the same values.
 *
 * @throws LockKeyError when a value is undefined, null, empty, NaN, an object or the like, or when no text separates
 *   two values
 * @example
 * ```ts
 * import { lockKey } from 'nestjs-holdfast';
 *
 * const orderId = '42';
 * await locks.run(lockKey`order:${orderId}:receipt`, () => ship(orderId));
 * ```
 */
export function lockKey(texts: TemplateStringsArray, ...values: readonly unknown[]): string {
  const reserved = separate(texts);
  if (typeof reserved === 'string') throw new LockKeyError({ problem: `lockKey: ${reserved}` });
  const [first = '', ...rest] = texts;
  const key = rest.reduce((made, text, index) => {
    const what = `lockKey: the value after ${JSON.stringify(texts[index])}`;
    return made + encodeKeyValue(values[index], what, { reserved }) + text;
  }, first);
  if (first !== '') rememberKey(key, rest.length === 0 ? first : `${first}…`);
  return checkKey(key);
}

/** A call nearly always asks for a key right after it was made. */
const MOST = 1_000;

let recent = new Map<string, string>();
let before = new Map<string, string>();

/** Remembers, of at least the last 1,000 keys that `lockKey` has made, what messages call them. */
function rememberKey(key: string, name: string): void {
  if (recent.size >= MOST) {
    before = recent;
    recent = new Map();
  }
  recent.set(key, name);
}

/** What messages call locks of these keys: it names no value. `undefined` if that is not known of any of them. */
export function nameOfKeys(keys: string | readonly string[]): string | undefined {
  if (!Array.isArray(keys)) return recent.get(keys as string) ?? before.get(keys as string);
  const names = new Set(keys.map((key: string) => nameOfKeys(key)));
  names.delete(undefined);
  return names.size === 0 ? undefined : [...names].join(', ');
}
