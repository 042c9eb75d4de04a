/** What an operator is about to do. */
export interface Deed {
  readonly path: 'release' | 'release-instance' | 'forget-once';
  readonly title: string;
  /** What it means. */
  readonly effect: string;
  readonly verb: string;
  /** What is said when it is done, of the keys that it reached. */
  readonly done: (keys: readonly string[]) => string;
  readonly body: Readonly<Record<string, string>>;
}

/** Starts a deed: a dialog asks why. */
export type Ask = (deed: Deed) => void;

export const releaseOf = (key: string, effect: string): Deed => ({
  path: 'release',
  title: `Release ${key}?`,
  effect,
  verb: 'Release',
  done: (keys) => (keys.length > 0 ? `Released ${key}.` : `${key} was free already.`),
  body: { key },
});

export const forgetOf = (key: string): Deed => ({
  path: 'forget-once',
  title: `Forget that ${key} was done?`,
  effect: 'The next caller does the work again.',
  verb: 'Forget',
  done: (keys) => (keys.length > 0 ? `Forgot ${key}.` : `Nothing was known of ${key}.`),
  body: { key },
});

export const releaseAllOf = (id: string, who: string): Deed => ({
  path: 'release-instance',
  title: `Release all locks of ${who}?`,
  effect:
    'For a process that is dead. If it still runs, its work continues beside that of the next holders until it is notified.',
  verb: 'Release all',
  done: (keys) => (keys.length === 0 ? 'It held nothing.' : `Released ${keys.join(', ')}.`),
  body: { id },
});

/** Resolves with what to say; rejects with what went wrong. */
export async function perform({ path, body, done }: Deed, reason: string): Promise<string> {
  const response = await fetch(`api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-holdfast-board': '1' },
    body: JSON.stringify({ ...body, reason }),
  }).catch(() => {
    throw new Error('The application cannot be reached.');
  });
  const answer = (await response.json().catch(() => ({}))) as {
    readonly keys?: readonly string[];
    readonly message?: unknown;
  };
  if (response.ok) return done(answer.keys ?? []);
  const why = typeof answer.message === 'string' ? `: ${answer.message}` : '.';
  throw new Error(`Not done. The application answered ${response.status}${why}`);
}
