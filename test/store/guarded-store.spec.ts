import { describe, expect, it } from '@jest/globals';
import { LockService, LockStoreUnavailableError } from 'nestjs-holdfast';
import type { LockStore } from '../../lib/store/lock-store.js';
import { GuardedStore } from '../../lib/store/guarded-store.js';
import { systemClock } from '../../lib/time/clock.js';
import { ScriptedStore } from '../support/scripted-store.js';
import { LINE, request } from './open-store.js';

/** A store whose methods of these names do this, whatever the port says. */
function faultyStore(methods: Partial<Record<keyof LockStore, () => unknown>>): LockStore {
  return Object.assign(new ScriptedStore(), methods) as LockStore;
}

const around = (store: LockStore): GuardedStore => new GuardedStore(store, systemClock);

const NODE = { node: 'a:1', kind: 'timeout', message: 'late' };
const HELD = { status: 'held', key: 'key', remainingMs: 5, checkAgainMs: 5 };
const REASONLESS = { status: 'lost' };

const FAULT = {
  status: 'unavailable',
  nodes: [{ node: 'store', kind: 'error', message: expect.any(String) }],
  transient: false,
};

const OF_NO_METHOD: [string, unknown][] = [
  ['nothing', undefined],
  ['null', null],
  ['a text', 'granted'],
  ['an object without status', {}],
  ['an unknown status', { status: 'weird' }],
  ['a status that every object has', { status: 'toString' }],
  ['a status without text', { status: Object.create(null) as unknown }],
  ['unavailable without nodes', { status: 'unavailable' }],
  ['unavailable with nodes that are none', { status: 'unavailable', nodes: [null] }],
  ['unavailable with a hole', { status: 'unavailable', nodes: new Array(1) }],
  [
    'a status that throws',
    Object.defineProperty({}, 'status', {
      get() {
        throw new Error('no status');
      },
    }),
  ],
];

const MALFORMED: [keyof LockStore, string, unknown][] = [
  ...(['acquire', 'extend', 'release', 'inspect', 'forceRelease'] as const).flatMap((method) =>
    OF_NO_METHOD.map(([what, answer]): [keyof LockStore, string, unknown] => [
      method,
      what,
      answer,
    ]),
  ),
  ['acquire', 'granted without a token', { status: 'granted' }],
  ['acquire', 'granted with a token of 0', { status: 'granted', fencingToken: 0 }],
  ['acquire', 'granted with a token as text', { status: 'granted', fencingToken: '7' }],
  ['acquire', 'held without numbers', { status: 'held', key: 'key' }],
  ['acquire', 'held without a key', { ...HELD, key: undefined }],
  ['acquire', 'held for NaN', { ...HELD, remainingMs: NaN }],
  ['acquire', 'held, to be looked at at NaN', { ...HELD, checkAgainMs: NaN }],
  ['acquire', 'held by nobody', { ...HELD, holder: null }],
  ['acquire', 'held for less than nothing', { ...HELD, remainingMs: -1 }],
  ['acquire', 'released', { status: 'released' }],
  ['extend', 'lost without a reason', REASONLESS],
  ['extend', 'granted', { status: 'granted', fencingToken: 1 }],
  ['release', 'extended', { status: 'extended' }],
  ['inspect', 'held without numbers', { status: 'held' }],
  ['forceRelease', 'free', { status: 'free' }],
];

const SOUND: [keyof LockStore, object][] = [
  ['acquire', { status: 'granted', fencingToken: 1 }],
  ['acquire', HELD],
  ['acquire', { ...HELD, remainingMs: Infinity }],
  ['acquire', { status: 'unavailable', nodes: [NODE], transient: true }],
  ['extend', { status: 'extended' }],
  ['extend', { status: 'lost', reason: 'stolen' }],
  ['extend', { status: 'lost', reason: 'released-elsewhere' }],
  ['extend', { status: 'unavailable', nodes: [NODE], transient: true }],
  ['release', { status: 'released' }],
  ['release', { status: 'not-held' }],
  ['inspect', { status: 'free' }],
  ['inspect', { status: 'held', remainingMs: 5 }],
  ['forceRelease', { status: 'not-held' }],
];

/** What the guard makes of `answer`, given to `method`. */
async function guarded(method: keyof LockStore, answer: () => unknown): Promise<unknown> {
  const store = around(faultyStore({ [method]: answer }));
  const lease = request('key');
  if (method === 'acquire') return store.acquire(lease);
  if (method === 'extend') return (await store.extend([lease]))[0];
  if (method === 'release') return store.release(lease);
  if (method === 'inspect') return store.inspect('key');
  return store.forceRelease('key');
}

const wrapped = (method: keyof LockStore, answer: unknown): unknown =>
  method === 'extend' ? [answer] : answer;

describe('what a store answers', () => {
  it.each(MALFORMED)('to %s: %s is an outage', async (method, _what, answer) => {
    const given = wrapped(method, answer);
    expect(await guarded(method, () => Promise.resolve(given))).toEqual(FAULT);
    expect(await guarded(method, () => given)).toEqual(FAULT);
  });

  it.each(SOUND)('to %s: %j stays as it is', async (method, answer) => {
    expect(await guarded(method, () => Promise.resolve(wrapped(method, answer)))).toBe(answer);
  });

  it.each(['acquire', 'extend', 'release', 'inspect', 'forceRelease'] as const)(
    'to %s by throwing, at once or later, is an outage',
    async (method) => {
      for (const thrown of [new Error('broken'), undefined, Object.create(null) as unknown]) {
        const throws = (): never => {
          throw thrown;
        };
        expect(await guarded(method, throws)).toEqual(FAULT);

        expect(await guarded(method, () => Promise.reject(thrown))).toEqual(FAULT);
      }
    },
  );

  it('to renewals: one that is malformed, or a hole, does not spoil the others', async () => {
    const leases = [request('a'), request('b'), request('c')];
    const holed: unknown[] = [{ status: 'extended' }, { status: 'weird' }];
    holed.length = 3;
    const store = around(faultyStore({ extend: () => holed }));
    expect(await store.extend(leases)).toEqual([{ status: 'extended' }, FAULT, FAULT]);
  });

  it.each([[undefined], [null], [{ length: 2 }], ['ab'], [[{ status: 'extended' }]]])(
    'to two renewals: %j is an outage of both',
    async (answer) => {
      const store = around(faultyStore({ extend: () => answer }));
      expect(await store.extend([request('a'), request('b')])).toEqual([FAULT, FAULT]);
    },
  );

  it('is repeated without the credentials of URLs', async () => {
    const outcome = await guarded('acquire', () => {
      throw new Error('cannot reach redis://:s3cret@h');
    });
    expect(JSON.stringify(outcome)).toContain('redis://***@h');
  });
});

describe('a store that throws at once', () => {
  const throws = (): never => {
    throw new Error('broken');
  };

  it('from listen is looked at in intervals; so is one that answers with something else', async () => {
    for (const listen of [throws, () => undefined, () => 'yes']) {
      const store = around(faultyStore({ listen }));
      expect(await store.listen(() => undefined)).toBe('polling');
    }
  });

  it('from leave disturbs nobody', async () => {
    const store = around(faultyStore({ leave: throws }));
    await expect(store.leave(request('key'), LINE)).resolves.toBeUndefined();
  });

  it('from close is reported by a rejection', async () => {
    const closing = around(faultyStore({ close: throws })).close();
    await expect(closing).rejects.toThrow('broken');
  });
});

describe('callers of a store that answers nonsense', () => {
  it.each([
    ['nothing', undefined],
    ['unavailable without nodes', { status: 'unavailable' }],
    ['held for NaN', { ...HELD, remainingMs: NaN, checkAgainMs: NaN }],
  ])('(%s) are told of an outage, waiting or not', async (_what, answer) => {
    const store = faultyStore({ acquire: () => Promise.resolve(answer) });
    const locks = new LockService({ store });
    await expect(locks.tryAcquire('key')).rejects.toThrow(LockStoreUnavailableError);
    await expect(locks.acquire('key', { wait: 500 })).rejects.toThrow(LockStoreUnavailableError);
    await locks.shutdown(0);
  });

  it('HF-22 (held by no text) are told of an outage at once', async () => {
    const store = faultyStore({ acquire: () => ({ ...HELD, holder: null }) });
    const locks = new LockService({ store });
    await expect(locks.acquire('key', { wait: '1h' })).rejects.toThrow(LockStoreUnavailableError);
    await locks.shutdown(0);
  });

  it('HF-22 are told what went wrong when their line cannot go on, and the next caller opens another line', async () => {
    let reads = 0;
    const moody = {
      ...HELD,
      get holder() {
        reads += 1;
        if (reads > 1) throw new Error('read too often');
        return 'somebody';
      },
    };
    let answer: unknown = moody;
    const locks = new LockService({ store: faultyStore({ acquire: () => answer }) });
    const waiting = [locks.acquire('key', { wait: '1h' }), locks.acquire('key', { wait: '1h' })];
    const outcomes = await Promise.allSettled(waiting);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(reads).toBe(2);
    answer = { status: 'granted', fencingToken: 1 };
    await (await locks.acquire('key', { wait: '1h' })).release();
    await locks.shutdown(0);
  });
});

describe('a store that outlives its service', () => {
  it('tells it nothing after close, and is given one listener however often it is asked', async () => {
    const given = new Set<() => void>();
    const listen = (...listeners: (() => void)[]): string => {
      for (const listener of listeners) given.add(listener);
      return 'listening';
    };
    const store = around(faultyStore({ listen: listen }));
    const told: string[] = [];
    for (let time = 0; time < 2; time += 1) {
      await store.listen(
        () => told.push('released'),
        () => told.push('deaf'),
      );
    }
    const tell = (): void => {
      for (const listener of given) listener();
    };
    tell();
    expect(told).toEqual(['released', 'deaf']);
    await store.close();
    tell();
    expect(told).toEqual(['released', 'deaf']);
  });
});

describe('GuardedStore and what a store knows of work that is to be done once', () => {
  const reference = { key: 'work', token: 'token', owner: 'me', fencingToken: 1 };
  const begin = { ...reference, attempts: 3, lifeMs: 1_000, keepMs: 1_000 };
  const finish = { ...reference, attempt: 1, end: 'done' as const, lifeMs: 1_000 };

  const guarded = (answer: () => unknown) => {
    const once = { begin: answer, keep: answer, finish: answer };
    return around(Object.assign(new ScriptedStore(), { once }) as unknown as LockStore).once!;
  };

  it('has none where the store has none', () => {
    expect(around(faultyStore({})).once).toBeUndefined();
  });

  it.each([
    ...OF_NO_METHOD.map(([what, answer]) => [what, answer]),
    ['begun without a number', { status: 'begun' }],
    ['begun with half an attempt', { status: 'begun', attempt: 0.5 }],
    ['done without a number', { status: 'done' }],
    ['done with a value that is no text', { status: 'done', attempts: 1, value: {} }],
    ['exhausted with an error that is no text', { status: 'exhausted', attempts: 1, error: 7 }],
    ['lost without a number', { status: 'lost' }],
    ['granted', { status: 'granted', fencingToken: 1 }],
  ])('takes %s for an outage', async (_, answer) => {
    const once = guarded(() => Promise.resolve(answer));
    expect(await once.begin(begin)).toEqual(FAULT);
    expect(await once.keep({ ...finish })).toEqual(FAULT);
    expect(await once.finish(finish)).toEqual(FAULT);
  });

  it('takes what it throws for an outage, and passes on what the port knows', async () => {
    const thrown = guarded(() => {
      throw new Error('broken');
    });
    expect(await thrown.begin(begin)).toEqual(FAULT);
    const begun = { status: 'begun', attempt: 2 };
    expect(await guarded(() => begun).begin(begin)).toBe(begun);
    const accepted = { status: 'accepted' };
    expect(await guarded(() => accepted).finish(finish)).toBe(accepted);
    expect(await guarded(() => accepted).keep({ ...finish })).toBe(accepted);
  });
});
