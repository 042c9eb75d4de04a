import { describe, expect, it } from '@jest/globals';
import { auditEntryIn, noteOf } from '../../lib/admin/lock-admin.js';
import {
  concernedBy,
  described,
  infoOf,
  isInUse,
  unresponsiveOf,
  summarized,
  type Knowledge,
} from '../../lib/admin/describe.js';
import type { Answer } from '../../lib/engine/messages.js';
import type { FoundInstance, FoundKey } from '../../lib/store/admin-store.js';
import { leaseIdOf } from '../../lib/store/owner-token.js';

const WALL_MS = Date.UTC(2030, 0, 1);
const at = (ms: number): Date => new Date(WALL_MS + ms);

const instanceOf = (id: string, facts: Partial<FoundInstance> = {}): FoundInstance => ({
  ...{ id, application: 'orders', host: 'web-3', pid: 7, startedAtMs: WALL_MS - 60_000 },
  ...{ seenMsAgo: 1_000, address: `["plain holdfast:${id}"]`, ...facts },
});
const ONE = instanceOf('oneoneon');
const OTHER = instanceOf('otherone');
const INSTANCES = [ONE, OTHER, instanceOf('idleidle')];

const infoAbout = ({ id }: FoundInstance, facts: object = {}) => ({
  ...{ id, application: 'orders', host: 'web-3', pid: 7, isUnresponsive: false, isListening: true },
  ...{ startedAt: at(-60_000), seenAt: at(-1_000), ...facts },
});

/** A token of an instance. */
const tokenOf = ({ id }: FoundInstance, name: string, end = ''): string =>
  `holdfast:${id}.00000000-${name}${end}`;
const [FIRST, SECOND] = ['aaaaaaaa', 'bbbbbbbb'];
const OTHER_LEASE = leaseIdOf(tokenOf(ONE, SECOND));

const knowing = (...answers: readonly (readonly [FoundInstance, Answer])[]): Knowledge => ({
  instances: INSTANCES,
  answers: new Map(answers.map(([{ id }, answer]) => [id, answer])),
  wallMs: WALL_MS,
});

const FREE: FoundKey = { key: 'order:42', holders: [], line: [] };
const heldUnder = (...tokens: readonly string[]): FoundKey => ({
  ...FREE,
  holders: tokens.map((token, index) => ({
    token,
    remainingMs: 1_000 * (index + 1),
    sinceMs: WALL_MS - 5_000,
  })),
});
const placeOf = (token: string, channel = '') => ({ token, channel, sinceMs: WALL_MS - 2_000 });

describe('an instance', () => {
  it('is described with what is known of it', () => {
    expect(infoOf(ONE, WALL_MS)).toStrictEqual(infoAbout(ONE));
    const whole = instanceOf('whole', { version: '1.4.2', service: 'jobs', seenMsAgo: 16_000 });
    const seen = { seenAt: at(-16_000), isUnresponsive: true };
    expect(infoOf(whole, WALL_MS)).toStrictEqual(
      infoAbout(whole, { version: '1.4.2', service: 'jobs', ...seen }),
    );
    expect(infoOf(instanceOf('deaf', { address: undefined }), WALL_MS).isListening).toBe(false);
  });

  it('is unresponsive when it was asked and did not reply', () => {
    const { answers } = knowing([ONE, {}]);
    expect(unresponsiveOf([ONE, OTHER], answers, WALL_MS)).toStrictEqual([infoAbout(OTHER)]);
  });

  it('is concerned by a key that it holds, or waits for, by its token or its channel', () => {
    const held = heldUnder(tokenOf(ONE, FIRST), 'of other software');
    expect(concernedBy(held, INSTANCES)).toEqual([ONE]);
    const waiting = { ...FREE, line: [placeOf(tokenOf(OTHER, FIRST))] };
    expect(concernedBy(waiting, INSTANCES)).toEqual([OTHER]);
    const heard = { ...FREE, line: [placeOf('a name', `holdfast:${OTHER.id}`)] };
    const deaf = instanceOf('deaf', { address: undefined });
    expect(concernedBy(heard, [deaf, ...INSTANCES])).toEqual([OTHER]);
    expect(concernedBy({ ...FREE, line: [placeOf('a name')] }, [deaf, ...INSTANCES])).toEqual([]);
  });
});

describe('the summary of a key', () => {
  it('says who holds it, in which mode, since when and for how long', () => {
    const token = tokenOf(ONE, FIRST, ':shared');
    const found = { ...heldUnder(token, 'holdfast:x:shared'), line: [placeOf('a'), placeOf('b')] };
    expect(isInUse(found)).toBe(true);
    expect(summarized(found, knowing())).toStrictEqual({
      ...{ key: 'order:42', state: 'held', mode: 'shared', instance: infoAbout(ONE) },
      ...{ since: at(-5_000), remainingMs: 2_000, holders: 2, waiting: 2 },
      leases: [
        { leaseId: leaseIdOf(token), instanceId: ONE.id },
        { leaseId: leaseIdOf('holdfast:x:shared') },
      ],
      waitingInstanceIds: [],
      isUnresponsive: false,
    });
  });

  it('counts the places of a limit, and of nothing else', () => {
    const limited = heldUnder(tokenOf(ONE, FIRST, '*3:limit:5'), tokenOf(ONE, SECOND, ':limit:5'));
    expect(summarized(limited, knowing())).toMatchObject({ mode: 'limit:5', inUse: 4 });
    const shared = heldUnder(tokenOf(ONE, FIRST, ':shared'), tokenOf(ONE, SECOND, ':shared'));
    expect(summarized(shared, knowing())).not.toHaveProperty('inUse');
  });

  it('of a lock of other software does not know since when', () => {
    expect(summarized(heldUnder('theirs'), knowing())).toStrictEqual({
      ...{ key: 'order:42', state: 'held', mode: 'exclusive', remainingMs: 1_000 },
      ...{ holders: 1, waiting: 0, leases: [{ leaseId: leaseIdOf('theirs') }] },
      ...{ waitingInstanceIds: [], isUnresponsive: false },
    });
  });

  it('of a free key says what is left there', () => {
    const once = { state: 'done', attempts: 1, remainingMs: 9 };
    const none = {
      key: 'order:42',
      state: 'free',
      holders: 0,
      isUnresponsive: false,
      leases: [],
      waitingInstanceIds: [],
    };
    expect(isInUse(FREE)).toBe(false);
    expect(isInUse({ ...FREE, once })).toBe(true);
    expect(isInUse({ ...FREE, line: [placeOf('a')] })).toBe(true);
    expect(summarized(FREE, knowing())).toStrictEqual({ ...none, waiting: 0 });
    expect(summarized({ ...FREE, once }, knowing())).toStrictEqual({
      ...none,
      waiting: 0,
      once: 'done',
    });
  });
});

describe('the holder of a key', () => {
  const holderIn = (found: FoundKey, knowledge: Knowledge) => described(found, knowledge).holders;
  const facts = { method: 'Orders.pay', template: 'order:<id>', place: 'orders.ts:7' };

  it('is described by what it answers itself, of that lock', () => {
    const leaseId = leaseIdOf(tokenOf(ONE, FIRST));
    const other = { ...facts, leaseId: OTHER_LEASE, heldMs: 1, fencingToken: 1 };
    const answer = { holds: [other, { ...facts, leaseId, heldMs: 3_000, fencingToken: 7 }] };
    expect(holderIn(heldUnder(tokenOf(ONE, FIRST)), knowing([ONE, answer]))).toStrictEqual([
      {
        leaseId,
        ...{ instance: infoAbout(ONE), since: at(-3_000), fencingToken: 7, isForeign: false },
        ...{ remainingMs: 1_000, ...facts, isUnresponsive: false },
      },
    ]);
  });

  it('by several together is known since when from its record, where the store does not know', () => {
    const token = tokenOf(ONE, FIRST, ':shared');
    const recorded = { leaseId: leaseIdOf(token), sinceMs: WALL_MS - 7_000, isLeading: true };
    const found = { ...FREE, holders: [{ token, remainingMs: 1_000 }] };
    const knowledge = { ...knowing(), instances: [{ ...ONE, holds: [recorded] }] };
    expect(summarized(found, knowledge)).toMatchObject({ since: at(-7_000), isLeader: true });
    expect(summarized(found, knowing())).not.toHaveProperty('since');
  });

  it('that is unresponsive is described by what it has recorded', () => {
    const leaseId = leaseIdOf(tokenOf(ONE, FIRST));
    const holds = [{ leaseId: OTHER_LEASE }, { leaseId, method: 'Orders.pay' }];
    const recorded = { ...ONE, holds };
    const knowledge = { ...knowing(), instances: [recorded] };
    expect(holderIn(heldUnder(tokenOf(ONE, FIRST)), knowledge)).toStrictEqual([
      {
        leaseId,
        ...{ instance: infoAbout(ONE), since: at(-5_000), isForeign: false, remainingMs: 1_000 },
        ...{ method: 'Orders.pay', isUnresponsive: true },
      },
    ]);
    const known = knowing([ONE, {}]);
    expect(holderIn(heldUnder(tokenOf(ONE, FIRST)), known)).toMatchObject([
      { isUnresponsive: false },
    ]);
    expect(holderIn(heldUnder(tokenOf(ONE, FIRST)), knowing())).toMatchObject([
      { isUnresponsive: true },
    ]);
  });

  it('may be other software, a lease without a holder, or several places', () => {
    const found = heldUnder(
      'theirs',
      'holdfast:detached.digest',
      tokenOf(ONE, FIRST, '*3:limit:5'),
    );
    const rest = { isForeign: false, since: at(-5_000) };
    const [foreign, detached, limited] = found.holders.map(({ token }) => leaseIdOf(token));
    expect(holderIn(found, { ...knowing(), instances: [] })).toStrictEqual([
      { leaseId: foreign, isForeign: true, remainingMs: 1_000, isUnresponsive: false },
      { leaseId: detached, ...rest, isDetached: true, remainingMs: 2_000, isUnresponsive: false },
      { leaseId: limited, ...rest, places: 3, remainingMs: 3_000, isUnresponsive: false },
    ]);
  });
});

describe('the description of a key', () => {
  it('has the fencing token, the limit and the mode', () => {
    const found = { ...heldUnder(tokenOf(ONE, FIRST, ':limit:5')), fencingToken: 9, limit: 5 };
    expect(described(found, knowing())).toMatchObject({
      key: 'order:42',
      state: 'held',
      mode: 'limit:5',
      fencingToken: 9,
      limit: 5,
    });
    expect(described(FREE, knowing())).toStrictEqual({
      key: 'order:42',
      state: 'free',
      holders: [],
      line: [],
    });
  });

  it.each([
    [
      { state: 'failed', text: 'no paper' },
      { state: 'failed', error: 'no paper' },
    ],
    [{ state: 'failed', text: '' }, { state: 'failed' }],
    [{ state: 'done', text: '"value"' }, { state: 'done' }],
  ])('has what became of work: %j', (once, expected) => {
    const found = { ...FREE, once: { ...once, attempts: 2, remainingMs: 9 } };
    expect(described(found, knowing()).once).toStrictEqual({
      ...expected,
      attempts: 2,
      keptForMs: 9,
    });
  });

  it('has the line, and the callers of a process at its first place', () => {
    const line = [
      placeOf(tokenOf(ONE, FIRST, '*2:limit:5')),
      placeOf(tokenOf(ONE, SECOND)),
      placeOf(tokenOf(OTHER, FIRST)),
      { token: 'a name', channel: '' },
    ];
    const waits = [
      { waitedMs: 500, keys: ['order:42'], method: 'Orders.pay' },
      { waitedMs: 400, keys: ['order:42', 'order:43'] },
    ];
    const since = at(-2_000);
    expect(described({ ...FREE, line }, knowing([ONE, { waits }])).line).toStrictEqual([
      {
        ...{ position: 1, places: 2, instance: infoAbout(ONE), since },
        ...{ keys: ['order:42', 'order:43'], isUnresponsive: false },
        callers: [{ method: 'Orders.pay', since: at(-500) }, { since: at(-400) }],
      },
      { position: 2, instance: infoAbout(ONE), since, isUnresponsive: false },
      { position: 3, instance: infoAbout(OTHER), since, isUnresponsive: true },
      { position: 4, isUnresponsive: false },
    ]);
    const alone = { waits: waits.slice(0, 1) };
    expect(described({ ...FREE, line }, knowing([ONE, alone])).line[0]).not.toHaveProperty('keys');
    expect(described({ ...FREE, line }, knowing([ONE, {}])).line[0]).not.toHaveProperty('callers');
  });
});

describe('an entry of the audit log', () => {
  const ENTRY = { action: 'release', keys: ['a', 'b'], by: 'ada', reason: 'stuck' } as const;
  const noted = { ...ENTRY, at: WALL_MS };

  it('is read as it was noted', () => {
    const note = noteOf({ ...ENTRY, at: at(0) }, 'an id');
    expect(JSON.parse(note)).toEqual({ ...noted, id: 'an id' });
    expect(auditEntryIn(note)).toStrictEqual({ ...ENTRY, at: at(0) });
    for (const action of ['release', 'release-instance', 'forget-once'])
      expect(auditEntryIn(JSON.stringify({ ...noted, action }))).toMatchObject({ action });
  });

  it.each([
    { at: 'now' },
    { action: 'steal' },
    { keys: 'a' },
    { keys: ['a', 1] },
    { keys: { length: 0 } },
    { by: 1 },
    { reason: undefined },
  ])('is none with %j', (wrong) => {
    expect(auditEntryIn(JSON.stringify({ ...noted, ...wrong }))).toBeUndefined();
  });

  it.each(['', '{', 'null', '[]'])('is none in %j', (note) => {
    expect(auditEntryIn(note)).toBeUndefined();
  });
});
