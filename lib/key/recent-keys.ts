/** A call nearly always asks for a key right after it was made. */
const MOST = 1_000;

let recent = new Map<string, string>();
let before = new Map<string, string>();

/** Remembers, of at least the last 1,000 keys that `lockKey` has made, what messages call them. */
export function rememberKey(key: string, name: string): void {
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
