import { describe, expect, it } from '@jest/globals';
import { checkedIntervention, Interventions } from '../../lib/engine/interventions.js';
import type { Answer, Question } from '../../lib/engine/messages.js';
import { LockStoreUnavailableError } from '../../lib/errors.js';
import type { Presence } from '../../lib/engine/presence.js';
import type { AdminStore, FoundHolder } from '../../lib/store/admin-store.js';
import type { LockStore, ReleaseOutcome } from '../../lib/store/lock-store.js';

const WHY = { by: 'ada', reason: 'stuck' };
const NODES = [{ node: 'a', kind: 'timeout', message: 'no reply' }] as const;
const OUTAGE: ReleaseOutcome = { status: 'unavailable', nodes: NODES, transient: true };
const holderOf = (token: string): FoundHolder => ({ token, remainingMs: 1_000 });
const LEASE = 'holdfast:one.lease';

type Asking = (instances: unknown, question: Question) => Promise<Map<string, Answer>>;

/** Over a store that shows these holders, one list a look, and answers releases so. Processes reply to messages so. */
function interventions(
  looks: readonly (readonly FoundHolder[] | 'outage')[],
  answers: Readonly<Record<string, ReleaseOutcome>> = {},
  replies: Readonly<Record<string, Answer>> | Asking = {},
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
  const ask: Asking =
    typeof replies === 'function' ? replies : async () => new Map(Object.entries(replies));
  const presence: Partial<Presence> = { ask };
  const store: Partial<LockStore> = {
    admin: admin as AdminStore,
    release: async ({ token }) => {
      released.push(token);
      return answers[token] ?? { status: 'released' };
    },
  };
  return { released, admin, parts: new Interventions(store as LockStore, presence as Presence) };
}

const TARGETS = [{ key: 'key', holder: holderOf(LEASE) }];
const ENDED = { status: 'ended' };
const NOT_HELD: ReleaseOutcome = { status: 'not-held' };

/** The newer call still wants the key. */
const STILL = new AbortController().signal;

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
    const down = { [LEASE]: OUTAGE };
    const still = interventions([[holderOf(LEASE)]], down).parts;
    expect(await still.end(TARGETS, WHY)).toEqual([OUTAGE]);
    expect(await interventions(['outage'], down).parts.end(TARGETS, WHY)).toEqual([OUTAGE]);
    const gone = interventions([[holderOf('later')]], down).parts;
    expect(await gone.end(TARGETS, WHY)).toEqual([ENDED]);
    await expect(
      interventions([[holderOf(LEASE)], [holderOf(LEASE)]], down).parts.endHoldersOf('key', WHY),
    ).rejects.toMatchObject({ code: 'LOCK_STORE_UNAVAILABLE' });
  });
});

describe('a lease that an operator ends', () => {
  it('is ended once the store has released it, whatever happens to the store then', async () => {
    const { parts } = interventions(['outage']);
    expect(await parts.end(TARGETS, WHY)).toEqual([ENDED]);
  });

  it.each<[string, Record<string, Answer>, object]>([
    ['not held where no process has ended it', {}, NOT_HELD],
    ['not held where its process knows nothing of it', { one: { endings: ['unknown'] } }, NOT_HELD],
    ['ended where its process has released it', { one: { endings: ['ended'] } }, ENDED],
    [
      'ended where a process that it does not name has released it',
      { one: { endings: ['unknown'] }, two: { endings: ['ended'] } },
      ENDED,
    ],
  ])('and that the store does not have is %s', async (_, replies, ending) => {
    const { parts } = interventions([], { [LEASE]: NOT_HELD }, replies);
    expect(await parts.end(TARGETS, WHY)).toEqual([ending]);
  });

  it('ends also where no instance can be found to notify', async () => {
    const { parts, admin, released } = interventions([]);
    admin.instances = async () => Promise.reject(new Error('NOPERM'));
    expect(await parts.end(TARGETS, WHY)).toEqual([ENDED]);
    expect(released).toEqual([LEASE]);
  });
});

describe('leases of several keys', () => {
  it('are ended by several messages: a longer one would not be delivered', async () => {
    const asked: number[] = [];
    const { parts, released } = interventions([], {}, async (_, question) => {
      if (question.about !== 'end') return new Map();
      asked.push(question.leases.length);
      const endings = question.leases.map(({ key }) => (key === '401' ? 'passed-on' : 'ended'));
      return new Map([['one', { endings }]]);
    });
    const holders = Array.from({ length: 450 }, (_, at) => ({ ...TARGETS[0]!, key: String(at) }));
    const endings = await parts.end(holders, WHY);
    expect(asked).toEqual([200, 200, 50]);
    expect(endings.flatMap(({ status }, at) => (status === 'ended' ? [] : [at]))).toEqual([401]);
    expect(released).toHaveLength(449);
  });
});

describe('a lease that a newer call replaces', () => {
  it.each<[string, Record<string, Answer>, { ended: boolean; released: string[] }]>([
    [
      'is over when its process has ended it',
      { one: { endings: ['ended'] } },
      { ended: true, released: [] },
    ],
    [
      'stays where its process holds it no more: its key is kept for a time',
      { one: { endings: ['unknown'] } },
      { ended: false, released: [] },
    ],
    ['is released for a process that does not reply', {}, { ended: true, released: [LEASE] }],
    [
      'is released for a process that does not say what has become of it',
      { one: {} },
      { ended: true, released: [LEASE] },
    ],
  ])('%s', async (_, replies, { ended, released }) => {
    const over = interventions([], {}, replies);
    expect(await over.parts.replace(TARGETS, WHY, 50, STILL)).toBe(ended);
    expect(over.released).toEqual(released);
  });

  it.each([
    ['connection', 'closed', false],
    ['timeout', 'no reply', false],
    ['error', 'CLUSTERDOWN Hash slot not served', false],
    ['error', "NOPERM this user has no permissions to run the 'zrevrange' command", true],
  ] as const)('and whose process cannot be found: %s (%s)', async (kind, message, isReplaced) => {
    const { parts, admin, released } = interventions([]);
    let asked = 0;
    admin.instances = async () => {
      asked += 1;
      const nodes = [{ node: 'a', kind, message }];
      throw new LockStoreUnavailableError({ operation: 'list', keys: [], nodes });
    };
    const replacing = parts.replace(TARGETS, WHY, 50, STILL);
    if (isReplaced) expect(await replacing).toBe(true);
    else await expect(replacing).rejects.toBeInstanceOf(LockStoreUnavailableError);
    expect([asked, released.length]).toEqual([2, isReplaced ? 1 : 0]);
  });

  it('stays when the newer call wants it no more', async () => {
    const { parts, released } = interventions([]);
    expect(await parts.replace(TARGETS, WHY, 50, AbortSignal.abort())).toBe(false);
    expect(released).toEqual([]);
  });

  it('is none where no call holds the key', async () => {
    expect(await interventions([]).parts.replace([], WHY, 50, STILL)).toBe(false);
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
