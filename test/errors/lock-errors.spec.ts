import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import * as errors from '../../lib/errors.js';
import {
  GuardedCommandError,
  LockConfigurationError,
  LockFencedError,
  LockDeadlockError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockNotAttachedError,
  LockNotBoundError,
  LockReentrancyError,
  LockReturnKindError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  LockWorkExhaustedError,
  type HeldHere,
  type LockErrorBody,
  type NodeFailure,
  type NotAttachedReason,
} from '../../lib/errors.js';
import { brokenLinksIn } from '../claims/docs/links.js';
import { LOSS_SENTENCES } from '../support/loss-sentences.js';

const PROJECT = fileURLToPath(new URL('../../', import.meta.url));
const REPOSITORY = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/';

const [ONE, TWO] = [['order:1'], ['order:1', 'order:2']];

const INTERNAL = {
  statusCode: 500,
  message: 'Internal server error',
  error: 'Internal Server Error',
};

const EVERY_ERROR: readonly (readonly [string, () => LockError, readonly string[], object])[] = [
  [
    'LockNotAcquiredError',
    () => new LockNotAcquiredError({ keys: ONE, retryAfterMs: 1_499.2, waitedMs: 20 }),
    ONE,
    {
      statusCode: 409,
      message: 'Somebody else is working on this right now. Try again later.',
      error: 'Conflict',
      code: 'LOCK_NOT_ACQUIRED',
    },
  ],
  [
    'LockLostError',
    () => new LockLostError({ keys: TWO, reason: 'stolen' }),
    TWO,
    {
      statusCode: 409,
      message:
        'The lock was lost while the work ran. The work may have taken effect: check before you try again.',
      error: 'Conflict',
      code: 'LOCK_LOST',
    },
  ],
  [
    'LockNotAttachedError',
    () => new LockNotAttachedError({ keys: ONE, reason: 'expired', fencingToken: 1 }),
    ONE,
    {
      statusCode: 409,
      message: 'This came too late: its lock is no longer held.',
      error: 'Conflict',
      code: 'LOCK_NOT_ATTACHED',
    },
  ],
  [
    'LockFencedError',
    () => new LockFencedError({ fencingToken: 7, keys: ONE, resource: 'account 7' }),
    ONE,
    {
      statusCode: 409,
      message: 'This was changed by another request meanwhile. Nothing was changed now.',
      error: 'Conflict',
      code: 'LOCK_FENCED',
    },
  ],
  [
    'LockStoreUnavailableError',
    () => new LockStoreUnavailableError({ operation: 'acquire', keys: ONE, nodes: [] }),
    ONE,
    {
      statusCode: 503,
      message: 'The lock store is not available. Try again later.',
      error: 'Service Unavailable',
      code: 'LOCK_STORE_UNAVAILABLE',
    },
  ],
  [
    'LockServiceClosedError',
    () => new LockServiceClosedError(ONE),
    ONE,
    {
      statusCode: 503,
      message: 'The service is shutting down. Try again later.',
      error: 'Service Unavailable',
      code: 'LOCK_SERVICE_CLOSED',
    },
  ],
  [
    'LockDeadlockError',
    () => new LockDeadlockError({ keys: ONE, circle: TWO }),
    ONE,
    {
      statusCode: 409,
      message: 'This operation and another one waited for each other. Try again later.',
      error: 'Conflict',
      code: 'LOCK_DEADLOCK',
    },
  ],
  [
    'LockWorkExhaustedError',
    () => new LockWorkExhaustedError({ keys: ONE, attempts: 3 }),
    ONE,
    {
      statusCode: 409,
      message: 'This has been tried without success, and is not tried again.',
      error: 'Conflict',
      code: 'WORK_EXHAUSTED',
    },
  ],
  [
    'LockKeyError',
    () => new LockKeyError({ problem: 'It is wrong.', fromRequest: true }),
    [],
    {
      statusCode: 400,
      message: 'A value that identifies what to lock is missing or not valid.',
      error: 'Bad Request',
      code: 'LOCK_KEY_INVALID',
    },
  ],
  [
    'LockKeyError',
    () => new LockKeyError({ problem: 'It is wrong.' }),
    [],
    { ...INTERNAL, code: 'LOCK_KEY_INVALID' },
  ],
  [
    'LockReentrancyError',
    () => new LockReentrancyError({ keys: ONE, problem: 'It is wrong.' }),
    ONE,
    { ...INTERNAL, code: 'LOCK_REENTRANCY' },
  ],
  [
    'LockNotBoundError',
    () => new LockNotBoundError('It is wrong.'),
    [],
    { ...INTERNAL, code: 'LOCK_NOT_BOUND' },
  ],
  [
    'LockReturnKindError',
    () => new LockReturnKindError('It is wrong.', ONE),
    ONE,
    { ...INTERNAL, code: 'LOCK_RETURN_KIND' },
  ],
];

describe('a lock error', () => {
  it.each(EVERY_ERROR)(
    'answers with a status and a body that do not name the key (%s)',
    (name, make, keys, body) => {
      const error = make();
      expect(error).toBeInstanceOf(LockError);
      expect(error.name).toBe(name);
      expect(error.keys).toEqual(keys);
      expect(error.getResponse()).toEqual(body);
      expect(error.getStatus()).toBe(error.getResponse().statusCode);
      expect(error.code).toBe(error.getResponse().code);
    },
  );

  it('begins its stack with its name and message, as logs print them', () => {
    const { stack, message } = new LockServiceClosedError(ONE);
    expect(stack).toMatch(`LockServiceClosedError: ${message}\n`);
  });

  it('keeps its detail out of JSON, where clients would see the key', () => {
    expect(JSON.stringify(new LockNotBoundError('order:42 is wrong'))).not.toContain('order:42');
  });

  it('tells its cause where there is one', () => {
    const cause = new RangeError('mine');
    expect(new LockLostError({ keys: ONE, reason: 'expired', cause }).cause).toBe(cause);
    expect('cause' in new LockLostError({ keys: ONE, reason: 'expired' })).toBe(false);
  });

  it('is presented once, however many hands it passes through', () => {
    const error = new LockServiceClosedError(ONE);
    const change = (body: LockErrorBody): LockErrorBody => ({
      ...body,
      statusCode: body.statusCode + 1,
    });
    error.presentAs(change);
    error.presentAs(change);
    expect(error.getStatus()).toBe(504);
    expect(error.getResponse().statusCode).toBe(504);
  });

  it('has for clients the message of its body, also when the application changes that', () => {
    const error = new LockServiceClosedError(ONE);
    const { detail } = error;
    expect(error.message).toBe('The lock was not acquired: the lock service is shutting down.');
    error.presentAs((body) => ({ ...body, message: 'Closed for today.' }));
    error.addressClient();
    expect(error.message).toBe('Closed for today.');
    expect(String(error)).toBe('LockServiceClosedError: Closed for today.');
    expect(error.stack).toMatch(/^LockServiceClosedError: Closed for today\.\n/);
    expect(JSON.parse(JSON.stringify(error))).toEqual(error.getResponse());
    expect(error.getResponse().message).toBe('Closed for today.');
    expect(error.detail).toBe(detail);
  });

  it('keeps its message where the application changes something else, or leaves none in the body', () => {
    const usual = new LockServiceClosedError(ONE).getResponse().message;
    for (const change of [{ statusCode: 423 }, { message: undefined }, { message: ['closed'] }]) {
      const error = new LockServiceClosedError(ONE);
      error.presentAs((body) => ({ ...body, ...change }) as LockErrorBody);
      expect(error.getResponse()).toMatchObject(change);
      error.addressClient();
      expect(error.message).toBe(usual);
    }
  });

  it('keeps the message that says what is wrong in the application, whatever the body says', () => {
    const error = new LockReentrancyError({ keys: ONE, problem: 'It is wrong.' });
    error.presentAs((body) => ({ ...body, message: 'Oh no.' }));
    expect(error.getResponse().message).toBe('Oh no.');
    error.addressClient();
    expect(error.message).toBe(
      'A lock was asked for inside a section that holds it, or a part of it.',
    );
  });

  it('names its lock once: errors pass through several calls', () => {
    const error = new LockServiceClosedError(ONE);
    error.nameLock(undefined);
    error.nameLock('order:<orderId>');
    error.nameLock('all:<day>');
    expect(error.message).toBe(
      'The lock order:<orderId> was not acquired: the lock service is shutting down.',
    );
  });

  it('is told to a GraphQL server, which looks for a path first, in the words for clients', () => {
    const error = new LockServiceClosedError(ONE);
    expect(error.path).toBeUndefined();
    expect(error.message).toBe('The service is shutting down. Try again later.');
    Object.assign(error, { path: ['orders'] });
    expect(error.path).toEqual(['orders']);
  });
});

/** What each error says of a lock, by what it calls that lock. */
const MESSAGES: readonly (readonly [LockError, (lock: string) => string])[] = [
  ...LOSS_SENTENCES.map(
    ([reason, happened]) =>
      [
        new LockLostError({ keys: ONE, reason }),
        (lock: string) => `The ${lock} was lost: ${happened}.`,
      ] as const,
  ),
  [
    new LockLostError({ keys: ONE, reason: 'not-held' }),
    (lock) =>
      `The ${lock} was expected to be held, but the code that called assertHeld() does not run in a section that holds it, ` +
      'or that section is over. Is an await missing in its work?',
  ],
  [
    new LockNotAttachedError({ keys: ONE, reason: 'attached', fencingToken: 1 }),
    (lock) => `The ${lock} was not attached: another process attached it already, and holds it.`,
  ],
  [
    new LockReentrancyError({ keys: ONE, problem: 'It is wrong.' }),
    (lock) => `The ${lock} was asked for inside a section that holds it, or a part of it.`,
  ],
  [
    new LockWorkExhaustedError({ keys: ONE, attempts: 3 }),
    (lock) => `The work under the ${lock} has failed too often, and is not tried again.`,
  ],
  [
    new LockStoreUnavailableError({ operation: 'renew', keys: ONE, nodes: [] }),
    (lock) => `Could not renew the ${lock}: the lock store is not available.`,
  ],
  [
    new LockStoreUnavailableError({ operation: 'ping', keys: [], nodes: [] }),
    () => 'The lock store is not available.',
  ],
  [
    new LockKeyError({ problem: 'It is wrong.' }),
    (lock) =>
      lock === 'lock'
        ? 'A key that was to be locked is not valid.'
        : `A value for the key of the ${lock} is not valid.`,
  ],
];

describe('the message of a lock error', () => {
  it('tells what happened to the lock, and names it as soon as its name is known', () => {
    for (const [error, messageOf] of MESSAGES) {
      expect(error.message).toBe(messageOf('lock'));
      error.nameLock('order:<orderId>');
      expect(error.message).toBe(messageOf('lock order:<orderId>'));
    }
  });
});

const [KEY, NODE] = ['order:s3cret', '10.0.0.7:6379'];
const PROBLEM = `The key "${KEY}" is wrong, says ${NODE}.`;

const TELLING: readonly (readonly [string, () => LockError])[] = [
  [
    'LockNotAcquiredError',
    () => new LockNotAcquiredError({ keys: [KEY, 'other'], retryAfterMs: 1_499.2, waitedMs: 20 }),
  ],
  [
    'LockLostError',
    () =>
      new LockLostError({
        keys: [KEY],
        reason: 'store-unavailable',
        cause: new Error(PROBLEM),
      }),
  ],
  [
    'LockNotAttachedError',
    () => new LockNotAttachedError({ keys: [KEY], reason: 'stolen', fencingToken: 1 }),
  ],
  [
    'LockFencedError',
    () => new LockFencedError({ fencingToken: 7, keys: [KEY], resource: NODE, cause: PROBLEM }),
  ],
  [
    'LockStoreUnavailableError',
    () =>
      new LockStoreUnavailableError({
        operation: 'acquire',
        keys: [KEY],
        nodes: [{ node: NODE, kind: 'error', message: PROBLEM }],
      }),
  ],
  ['LockServiceClosedError', () => new LockServiceClosedError([KEY])],
  ['LockDeadlockError', () => new LockDeadlockError({ keys: [KEY], circle: [KEY, 'other'] })],
  [
    'LockWorkExhaustedError',
    () => new LockWorkExhaustedError({ keys: [KEY], attempts: 3, lastError: PROBLEM }),
  ],
  ['LockKeyError', () => new LockKeyError({ problem: PROBLEM, fromRequest: true })],
  ['LockKeyError', () => new LockKeyError({ problem: PROBLEM, what: KEY })],
  ['LockReentrancyError', () => new LockReentrancyError({ keys: [KEY], problem: PROBLEM })],
  ['LockReturnKindError', () => new LockReturnKindError(PROBLEM, [KEY])],
];

describe('what clients may see of a lock error', () => {
  const noKeyNorNode = (error: LockError): void => {
    const [header] = String(error.stack).split('\n');
    expect(header).toBe(`${error.name}: ${error.message}`);
    for (const text of [error.message, String(error), header, JSON.stringify(error)]) {
      expect(text).not.toContain(KEY);
      expect(text).not.toContain(NODE);
    }
  };

  it.each(TELLING)('names no key and no server, and its detail does (%s)', (name, make) => {
    const error = make();
    expect(error.name).toBe(name);
    noKeyNorNode(error);
    expect(error.detail).toContain(KEY);
  });

  it('names no key where an object has no LockService, for that is given none', () => {
    const problem = 'OrdersService.pay has @WithLock, but this object has no LockService.';
    const error = new LockNotBoundError(problem);
    noKeyNorNode(error);
    expect(error).toMatchObject({ message: problem, detail: problem, keys: [] });
  });

  it('is tried with every lock error', () => {
    const all = Object.entries(errors).filter(([, each]) => each.prototype instanceof LockError);
    const tried = new Set([...TELLING.map(([name]) => name), 'LockNotBoundError']);
    expect([...tried].sort()).toEqual(all.map(([name]) => name).sort());
  });

  it('is its body as JSON, also as part of something else', () => {
    const error = new LockServiceClosedError([KEY]);
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({ error: error.getResponse() });
  });

  it('names servers in the detail only', () => {
    const nodes = [{ node: NODE, kind: 'timeout', message: 'no answer' }] as const;
    const error = new LockStoreUnavailableError({ operation: 'acquire', keys: [KEY], nodes });
    noKeyNorNode(error);
    expect(error.detail).toContain(NODE);
  });
});

describe('the address of the documentation', () => {
  const pageOf = (error: { readonly docs: string }): unknown =>
    brokenLinksIn('README.md', `[of the error](${error.docs.replace(REPOSITORY, '')})`, PROJECT);

  it.each(EVERY_ERROR)('leads to the code of %s, and no client gets it', (_, make) => {
    const error = make();
    expect(error.docs).toBe(`${REPOSITORY}docs/errors.md#${error.code.toLowerCase()}`);
    expect(pageOf(error)).toEqual([]);
    const sent = [
      error,
      Object.assign({}, error),
      error.getResponse(),
      error.extensions,
      error.message,
    ];
    for (const each of sent) expect(JSON.stringify(each)).not.toContain('docs');
  });

  it('is printed with an error that prevents the start', () => {
    const error = new LockConfigurationError('It is wrong.');
    expect(pageOf(error)).toEqual([]);
    expect(inspect(error)).toContain(
      "code: 'LOCK_CONFIGURATION',\n  docs: '" + REPOSITORY + "docs/errors.md#lock_configuration'",
    );
  });
});

describe('LockConfigurationError', () => {
  it('has its own name, and is no answer to a request', () => {
    const error = new LockConfigurationError('It is wrong.');
    expect(String(error)).toBe('LockConfigurationError: It is wrong.');
    expect(error).not.toBeInstanceOf(LockError);
  });
});

describe('LockNotAcquiredError', () => {
  const detailOf = (
    facts: { retryAfterMs?: number; waitedMs?: number; heldHere?: HeldHere },
    keys = ONE,
  ) => new LockNotAcquiredError({ keys, retryAfterMs: 1_500.2, waitedMs: 0, ...facts }).detail;

  it('says how long the holder may keep the lock, and to stand in line', () => {
    expect(detailOf({})).toBe(
      'Lock "order:1" could not be acquired: held by another owner for up to 1501 ms more. ' +
        'Try again later, or pass "wait" to stand in line.',
    );
  });

  it('says how long it waited', () => {
    expect(detailOf({ waitedMs: 20.4 }, TWO)).toBe(
      'Locks "order:1", "order:2" could not be acquired after waiting 20 ms: held by another owner for up to 1501 ms more. ' +
        'Try again later, or wait longer.',
    );
  });

  it('keeps the facts for the caller, in whole milliseconds until the end of the lease', () => {
    expect(
      new LockNotAcquiredError({ keys: ONE, retryAfterMs: 1_499.2, waitedMs: 20 }),
    ).toMatchObject({ retryAfterMs: 1_500, waitedMs: 20 });
  });

  it('names a lock without a TTL as what it is: asking again is of no use', () => {
    expect(detailOf({ retryAfterMs: Infinity })).toBe(
      'Lock "order:1" could not be acquired: nothing tells when it will be free. Either other software holds it with a lock that has ' +
        'no TTL, which an operator can delete ("forceRelease"), or "setLimit" allows fewer places than the call wants.',
    );
  });

  it('says where this process took the lock, as far as that is known', () => {
    const ending =
      'and for up to 1501 ms more unless it is renewed. Try again later, or pass "wait" to stand in line.';
    expect(detailOf({ heldHere: {} })).toBe(
      `Lock "order:1" could not be acquired: held in this same process, ${ending}`,
    );
    expect(detailOf({ heldHere: { heldMs: 7.6, place: 'pay (orders.ts:12:9)' } })).toBe(
      `Lock "order:1" could not be acquired: held for 8 ms in this same process, acquired at pay (orders.ts:12:9), ${ending}`,
    );
  });

  it('tells of a section around the call how not to ask for its lock again', () => {
    expect(detailOf({ heldHere: { heldMs: 7, place: 'a.ts:1', isAround: true } })).toBe(
      'Lock "order:1" could not be acquired: held for 7 ms by the run(), @WithLock or @RunOnce around this very call, ' +
        'acquired at a.ts:1: use run(), which shares the lock of the outer call, or leave this acquire() out.',
    );
  });

  it.each<[string, number, number | undefined, boolean]>([
    ['was held for longer than the wait', 20, 21, true],
    ['was held for exactly the wait', 20, 20, true],
    ['was taken in the meantime', 20, 19, false],
    ['was held, and nobody waited for it', 0, 21, false],
    ['was held for an unknown time', 20, undefined, false],
  ])('asks whether a lock was forgotten only if it can be: it %s', (_, waitedMs, heldMs, asks) => {
    const hint = ' If acquire() took it and it was forgotten, release it in a finally block.';
    const way = waitedMs > 0 ? 'wait longer' : 'pass "wait" to stand in line';
    const detail = detailOf({ waitedMs, heldHere: { heldMs } });
    const ending = detail.slice(detail.indexOf('Try again'));
    expect(ending).toBe(`Try again later, or ${way}.${asks ? hint : ''}`);
  });
});

describe('LockLostError', () => {
  it.each(LOSS_SENTENCES)(
    'says what happened, and that the work may have taken effect (%s)',
    (reason, happened) => {
      const advice =
        'The work done under it may have taken effect; check before you repeat it, and let the resource refuse old fencing tokens.';
      const detailOf = (keys: readonly string[]) => new LockLostError({ keys, reason }).detail;
      expect(detailOf(ONE)).toBe(`Lock "order:1" was lost: ${happened}. ${advice}`);
      expect(detailOf(TWO)).toBe(`Locks "order:1", "order:2" were lost: ${happened}. ${advice}`);
    },
  );

  it('does not speak of a loss where the lock was never held', () => {
    expect(new LockLostError({ keys: ONE, reason: 'not-held' }).detail).toBe(
      'Lock "order:1" was expected to be held, but the code that called assertHeld() does not run in a section that holds it, or that section is over. ' +
        'Is an await missing in its work?',
    );
  });

  it('says who has ended it, and why', () => {
    const intervention = { by: 'mia', reason: 'frozen' };
    const released = new LockLostError({ keys: ONE, reason: 'force-released', intervention });
    expect(released.detail).toMatch('an operator released it by force (mia: frozen). The work');
    expect(released.code).toBe('LOCK_LOST');
    expect(released.intervention).toEqual(intervention);
  });

  it('has a code and a text for clients of its own where a newer call has replaced it', () => {
    const { code, message } = new LockLostError({ keys: ONE, reason: 'replaced' }).getResponse();
    expect(code).toBe('LOCK_REPLACED');
    expect(message).toBe('A newer request has taken the place of this one.');
  });

  it('keeps the reason and the fencing token for the caller', () => {
    expect(new LockLostError({ keys: ONE, reason: 'stolen', fencingToken: 7 })).toMatchObject({
      reason: 'stolen',
      fencingToken: 7,
    });
  });
});

describe('LockNotAttachedError', () => {
  it('tells clients whether the work is done elsewhere or came too late', () => {
    const messageOf = (reason: NotAttachedReason) =>
      new LockNotAttachedError({ keys: ONE, reason, fencingToken: 1 }).getResponse().message;
    expect(messageOf('attached')).toBe('Another process has taken this over already.');
    expect(messageOf('stolen')).toBe('This came too late: its lock is no longer held.');
  });
});

describe('LockFencedError', () => {
  it('names the resource and the lock, as far as they are given', () => {
    const ending =
      ' was refused: its fencing token, 7, is smaller than one that was seen there. A later holder of the lock wrote that.';
    expect(new LockFencedError({ fencingToken: 7, keys: ONE, resource: 'account 7' }).detail).toBe(
      `A write to account 7 under the lock of "order:1"${ending}`,
    );
    const bare = new LockFencedError({ fencingToken: 7 });
    expect(bare.detail).toBe(`A write to the resource${ending}`);
    expect(bare.keys).toEqual([]);
  });
});

describe('GuardedCommandError', () => {
  it('says which command failed, counted from 1 as people do', () => {
    const error = new GuardedCommandError({
      index: 1,
      command: 'SET',
      message: 'ERR syntax error',
    });
    expect(error.message).toBe(
      'Command 2 of guarded() (SET) failed: ERR syntax error. Those before it have taken effect.',
    );
    expect(error).toMatchObject({ index: 1, command: 'SET' });
  });
});

describe('LockDeadlockError', () => {
  const circleOf = (calls: number) =>
    new LockDeadlockError({
      keys: ONE,
      circle: ['order:1', ...Array.from({ length: calls }, (_, call) => `key:${call}`)],
    });
  const waits = (key: string) => `which waits for "${key}", held by `;
  const BEGINNING =
    'Lock "order:1" was not waited for, because that would never end: "order:1" is held by ';
  const ADVICE = 'this call. Take all of the keys in one call, or in the same order everywhere.';

  it('tells of each call in the circle, and of what it waits for', () => {
    expect(circleOf(1).detail).toBe(`${BEGINNING}a call ${waits('key:0')}${ADVICE}`);
    expect(circleOf(2).detail).toBe(
      `${BEGINNING}a call ${waits('key:0')}another one, ${waits('key:1')}${ADVICE}`,
    );
    expect(circleOf(2).circle).toEqual(['order:1', 'key:0', 'key:1']);
  });

  it('counts the calls beyond the tenth', () => {
    const named = Array.from(
      { length: 9 },
      (_, call) => `another one, ${waits(`key:${call + 1}`)}`,
    ).join('');
    const ten = `${BEGINNING}a call ${waits('key:0')}${named}`;
    expect(circleOf(10).detail).toBe(ten + ADVICE);
    expect(circleOf(12).detail).toBe(
      `${ten}2 more calls that wait one for the other, the last one for ${ADVICE}`,
    );
  });

  it('speaks of several keys in the plural', () => {
    expect(new LockDeadlockError({ keys: TWO, circle: ['order:2'] }).detail).toMatch(
      'Locks "order:1", "order:2" were not waited for, because that would never end: "order:2" is held by this call. ',
    );
  });
});

describe('LockStoreUnavailableError', () => {
  const failure = (kind: NodeFailure['kind'], node = 'r1:6379'): NodeFailure => ({
    node,
    kind,
    message: 'what happened',
  });
  const errorOf = (operation: string, keys: string[], ...nodes: NodeFailure[]) =>
    new LockStoreUnavailableError({ operation, keys, nodes });

  it('says of each node what happened, and that nothing ran', () => {
    const nodes = [failure('timeout'), failure('error', 'r2:6379')];
    const error = errorOf('acquire', TWO, ...nodes);
    expect(error.nodes).toEqual(nodes);
    expect(error.detail).toBe(
      'Could not acquire "order:1", "order:2": the lock store is not available ' +
        '(r1:6379 (timeout): what happened; r2:6379 (error): what happened). ' +
        'No work ran without the lock. Check that Redis is reachable and try again.',
    );
  });

  it('does not say that nothing ran where something was under way, or where no key was asked for', () => {
    expect(errorOf('release', ONE, failure('timeout')).detail).toBe(
      'Could not release "order:1": the lock store is not available (r1:6379 (timeout): what happened). ' +
        'Check that Redis is reachable and try again.',
    );
    expect(errorOf('ping', [], failure('timeout')).detail).toMatch(
      'Could not ping the lock store: the lock store is not available',
    );
  });

  it.each<[NodeFailure['kind'][], string]>([
    [['timeout'], 'Check that Redis is reachable and try again.'],
    [['connection'], 'Check that Redis is reachable and try again.'],
    [['refused', 'error', 'connection'], 'Check that Redis is reachable and try again.'],
    [['error'], 'Redis is reachable, but answered with an error: that must be fixed first.'],
    [['refused'], 'Try again later.'],
    [['error', 'refused'], 'Try again later.'],
  ])('advises what can help: %j', (kinds, advice) => {
    const { detail } = errorOf('renew', ONE, ...kinds.map((kind) => failure(kind)));
    expect(detail).toMatch(new RegExp(`what happened\\)\\. ${advice}$`));
  });
});

describe('LockStoreUnavailableError of a driver', () => {
  it('names the database, for Redis has no part in it', () => {
    const failures = (['driver', 'r1:6379'] as const).map(
      (node) => ({ node, kind: 'connection', message: 'gone' }) as const,
    );
    const error = new LockStoreUnavailableError({
      operation: 'acquire',
      keys: ONE,
      nodes: failures,
    });
    expect(error.detail).toMatch(/Check the database of the driver and try again\.$/);
  });
});

describe('LockWorkExhaustedError', () => {
  it('says how often the work was tried, and how the last attempt ended', () => {
    expect(new LockWorkExhaustedError({ keys: ONE, attempts: 1 }).detail).toBe(
      'The work "order:1" is not tried any more, after 1 attempt.',
    );
    const error = new LockWorkExhaustedError({ keys: ONE, attempts: 3, lastError: 'No paper.' });
    expect(error).toMatchObject({ attempts: 3, lastError: 'No paper.' });
    expect(error.detail).toBe(
      'The work "order:1" is not tried any more, after 3 attempts. The last one ended with: No paper.',
    );
  });
});

describe('LockServiceClosedError', () => {
  it('says that no lock is to be had any more', () => {
    const ending = 'not acquired: this LockService is shutting down and grants no more locks.';
    expect(new LockServiceClosedError(ONE).detail).toBe(`Lock "order:1" was ${ending}`);
    expect(new LockServiceClosedError(TWO).detail).toBe(
      `Locks "order:1", "order:2" were ${ending}`,
    );
  });
});

describe('an error whose thrower words the problem', () => {
  it('has these words for its detail', () => {
    const problem = 'It is wrong.';
    const key = new LockKeyError({ problem, fromRequest: true, what: '<id>' });
    expect(key).toMatchObject({ detail: problem, fromRequest: true, what: '<id>' });
    expect(new LockKeyError({ problem }).fromRequest).toBe(false);
    expect(new LockReentrancyError({ keys: ONE, problem }).detail).toBe(problem);
    expect(new LockNotBoundError(problem).detail).toBe(problem);
    expect(new LockReturnKindError(problem)).toMatchObject({ detail: problem, keys: [] });
  });
});

describe('what GraphQL shows of an error', () => {
  it('is its code, its status and when to ask again; a filter may put its own in the place', () => {
    const error = new LockServiceClosedError(ONE);
    expect(error.extensions).toEqual({
      code: 'LOCK_SERVICE_CLOSED',
      status: 503,
      retryAfterMs: 1_000,
    });
    Object.assign(error, { extensions: { code: 'LATER', status: 503 } });
    expect(error.extensions).toEqual({ code: 'LATER', status: 503 });
  });
});
