import { describe, expect, it } from '@jest/globals';
import { checkedIntervention, Interventions } from '../../lib/engine/interventions.js';
import type { Presence } from '../../lib/engine/presence.js';
import type { AdminStore, FoundHolder } from '../../lib/store/admin-store.js';
import type { LockStore, ReleaseOutcome } from '../../lib/store/lock-store.js';

const WHY = { by: 'ada', reason: 'stuck' };
const NODES = [{ node: 'a', kind: 'timeout', message: 'no reply' }] as const;
const OUTAGE: ReleaseOutcome = { status: 'unavailable', nodes: NODES, transient: true };
const holderOf = (token: string): FoundHolder => ({ token, remainingMs: 1_000 });
const LEASE = 'holdfast:one.lease';

/** Over a store that shows these holders, one list a look, and answers releases so. */
function interventions(
  looks: readonly (readonly FoundHolder[] | 'outage')[],
  answers: Readonly<Record<string, ReleaseOutcome>> = {},
) {
  const released: string[] = [];
  const left = [...looks];
  const admin: Partial<AdminStore> = {
    look: async ([key = '']) => {
      const holders = left.shift() ?? [];
      if (holders === 'outage') throw new Error('outage');
      return [{ key, holders, line: [] }];
    },
    instances: async () => [],
  };
  const presence = { ask: async () => new Map() } as unknown as Presence;
  const store: Partial<LockStore> = {
    admin: admin as AdminStore,
    release: async ({ token }) => {
      released.push(token);
      return answers[token] ?? { status: 'released' };
    },
  };
  return { released, parts: new Interventions(store as LockStore, presence) };
}

describe('the end of leases by an operator', () => {
  it('is that of the holders that were found: where nobody holds the key, nothing is released', async () => {
    const free = interventions([[]]);
    expect(await free.parts.endHoldersOf('key', WHY)).toBe(false);
    expect(free.released).toEqual([]);
    const held = interventions([[holderOf(LEASE), holderOf('theirs')]]);
    expect(await held.parts.endHoldersOf('key', WHY)).toBe(true);
    expect(held.released).toEqual([LEASE, 'theirs']);
  });

  it('fails where the holders cannot be found out, and nothing is released', async () => {
    const down = interventions(['outage']);
    await expect(down.parts.endHoldersOf('key', WHY)).rejects.toThrow('outage');
    expect(down.released).toEqual([]);
  });

  it('is unknown where the store does not reply, unless the lease is seen to be gone', async () => {
    const targets = [{ key: 'key', holder: holderOf(LEASE) }];
    const down = { [LEASE]: OUTAGE };
    const still = interventions([[holderOf(LEASE)]], down).parts;
    expect(await still.end(targets, WHY)).toEqual([OUTAGE]);
    expect(await interventions(['outage'], down).parts.end(targets, WHY)).toEqual([OUTAGE]);
    const gone = interventions([[holderOf('later')]], down).parts;
    expect(await gone.end(targets, WHY)).toEqual([{ status: 'ended' }]);
    await expect(
      interventions([[holderOf(LEASE)], [holderOf(LEASE)]], down).parts.endHoldersOf('key', WHY),
    ).rejects.toMatchObject({ code: 'LOCK_STORE_UNAVAILABLE' });
  });
});

describe('who intervenes, and why,', () => {
  it('is one line each: others would forge lines of a log', () => {
    expect(checkedIntervention(WHY)).toEqual(WHY);
    for (const forged of ['', ' ', 'a'.repeat(501), 'eve\nERROR fake', '\u001b[31m', 'a\u2028b']) {
      expect(() => checkedIntervention({ ...WHY, reason: forged })).toThrow('needs "reason"');
      expect(() => checkedIntervention({ ...WHY, by: forged })).toThrow('needs "by"');
    }
  });
});
