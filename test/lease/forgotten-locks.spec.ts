import { describe, expect, it } from '@jest/globals';
import { ChildScript } from '../support/child-script.js';

const PROCESS = new URL('forgotten-process.ts', import.meta.url);

interface Seen {
  /** Keys that are held after the garbage was collected. */
  readonly held: readonly string[];
  readonly said: readonly string[];
}

async function seenWith(mode: string, environment = 'development'): Promise<Seen> {
  const { NODE_ENV } = process.env;
  try {
    process.env.NODE_ENV = environment;
    const child = new ChildScript(PROCESS, [mode], ['--expose-gc']);
    return JSON.parse(await child.output) as Seen;
  } finally {
    process.env.NODE_ENV = NODE_ENV;
  }
}

describe('a lock whose handle is collected while it is held', () => {
  it.each(['default', 'release', 'sample'])(
    'is released, with a warning that names the place (%s)',
    async (mode) => {
      const { held, said } = await seenWith(mode);
      expect(held).toEqual(['remembered', 'section']);
      expect(said).toEqual([
        expect.stringMatching(
          /^The lock of "forgotten", acquired at .*forgotten-process.*, was never released, and its handle is garbage/,
        ),
      ]);
    },
    30_000,
  );

  it('is released in production where that is asked for', async () => {
    const { held, said } = await seenWith('sample', 'production');
    expect(held).toEqual(['remembered', 'section']);
    expect(said).toHaveLength(1);
  }, 30_000);

  it.each(['production', 'test'])(
    'is kept in %s, where it may be meant to last',
    async (environment) => {
      const { held, said } = await seenWith('default', environment);
      expect(held).toEqual(['forgotten', 'remembered', 'section']);
      expect(said).toEqual([]);
    },
    30_000,
  );

  it('is kept where that is asked for', async () => {
    const { held, said } = await seenWith('keep');
    expect(held).toEqual(['forgotten', 'remembered', 'section']);
    expect(said).toEqual([]);
  }, 30_000);
});
