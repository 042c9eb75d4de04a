import { readFileSync } from 'node:fs';
import { HttpException } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import * as holdfast from 'nestjs-holdfast';
import {
  LockConfigurationError,
  LockError,
  LockKeyError,
  LockDeadlockError,
  LockLostError,
  LockNotAcquiredError,
  LockNotBoundError,
  LockReentrancyError,
  LockReturnKindError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  LockWorkExhaustedError,
  type LockErrorBody,
} from 'nestjs-holdfast';
import * as admin from 'nestjs-holdfast/admin';
import * as migrate from '@nestjs-holdfast/migrate';
import * as board from '@nestjs-holdfast/board';
import * as opentelemetry from 'nestjs-holdfast/opentelemetry';
import * as prometheus from 'nestjs-holdfast/prometheus';
import * as redlock from '@nestjs-holdfast/redlock';
import * as swagger from 'nestjs-holdfast/swagger';
import * as terminus from 'nestjs-holdfast/terminus';
import * as testing from 'nestjs-holdfast/testing';
import * as tools from 'nestjs-holdfast/tools';
import * as worker from 'nestjs-holdfast/worker';
import { LOSS_SENTENCES } from '../../support/loss-sentences.js';

describe('the exports', () => {
  it('of nestjs-holdfast are these', () => {
    expect(Object.keys(holdfast).sort()).toEqual([
      'CronLock',
      'GuardedCommandError',
      'InjectLockService',
      'Leader',
      'LockConfigurationError',
      'LockDeadlockError',
      'LockError',
      'LockErrorFilter',
      'LockErrorInterceptor',
      'LockFencedError',
      'LockInterceptor',
      'LockKeyError',
      'LockLostError',
      'LockModule',
      'LockNotAcquiredError',
      'LockNotAttachedError',
      'LockNotBoundError',
      'LockReentrancyError',
      'LockReturnKindError',
      'LockService',
      'LockServiceClosedError',
      'LockStoreUnavailableError',
      'LockWorkExhaustedError',
      'NonRetryableError',
      'RedisLockModule',
      'RunOnce',
      'WithLock',
      'defineLock',
      'getLockServiceToken',
      'lockKey',
      'setRetryAfter',
    ]);
  });

  it('of nestjs-holdfast are at most 70, with the types', () => {
    const index = readFileSync(new URL('../../../lib/index.ts', import.meta.url), 'utf8');
    const names = [...index.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
      list.split(',').filter((name) => name.trim() !== ''),
    );
    expect(names.length).toBeGreaterThan(60);
    expect(names.length).toBeLessThanOrEqual(70);
  });

  it('of nestjs-holdfast/admin are these', () => {
    expect(Object.keys(admin).sort()).toEqual(['LockAdmin', 'LockAdminModule']);
  });

  it('of nestjs-holdfast/tools are these', () => {
    expect(Object.keys(tools).sort()).toEqual([
      'LockAdmin',
      'LockConfigurationError',
      'LockKeyError',
      'LockStoreUnavailableError',
      'RedisServers',
      'createLocks',
      'describe',
      'isRedisUrl',
      'redact',
      'urlsIn',
    ]);
  });

  it('of @nestjs-holdfast/migrate are these', () => {
    expect(Object.keys(migrate).sort()).toEqual(['NoCompilerError', 'migrate']);
  });

  it('of @nestjs-holdfast/board are these', () => {
    expect(Object.keys(board)).toEqual(['LockBoardModule']);
  });

  it('of the entries for telemetry are these', () => {
    expect(Object.keys(opentelemetry)).toEqual(['observeWithOpenTelemetry']);
    expect(Object.keys(prometheus)).toEqual(['registerLockMetrics']);
  });

  it('of @nestjs-holdfast/redlock are these', () => {
    expect(Object.keys(redlock).sort()).toEqual([
      'ExecutionError',
      'Lock',
      'Redlock',
      'ResourceLockedError',
      'default',
    ]);
  });

  it('of nestjs-holdfast/swagger are these', () => {
    expect(Object.keys(swagger)).toEqual(['ApiLockConflict']);
  });

  it('of nestjs-holdfast/terminus are these', () => {
    expect(Object.keys(terminus)).toEqual(['LockHealthIndicator']);
  });

  it('of nestjs-holdfast/testing are these', () => {
    expect(Object.keys(testing).sort()).toEqual([
      'LockTestingModule',
      'TestLocks',
      'createTestLocks',
      'driverSuite',
    ]);
  });

  it('of nestjs-holdfast/worker are these', () => {
    expect(Object.keys(worker)).toEqual(['LockingWorker']);
  });
});

const INTERNAL = {
  statusCode: 500,
  message: 'Internal server error',
  error: 'Internal Server Error',
};

const LOST_END =
  'The work done under it may have taken effect; check before you repeat it, and let the resource refuse old fencing tokens.';

interface Case {
  readonly error: LockError;
  readonly body: LockErrorBody;
  /** Where it is not that of the body. */
  readonly message?: string;
  readonly detail: string;
  readonly facts?: object;
}

const cases: readonly Case[] = [
  {
    error: new LockNotAcquiredError({ keys: ['order:42'], retryAfterMs: 1234.5, waitedMs: 0 }),
    body: {
      statusCode: 409,
      message: 'Somebody else is working on this right now. Try again later.',
      error: 'Conflict',
      code: 'LOCK_NOT_ACQUIRED',
    },
    detail:
      'Lock "order:42" could not be acquired: held by another owner for up to 1235 ms more. ' +
      'Try again later, or pass "wait" to stand in line.',
    facts: { keys: ['order:42'], retryAfterMs: 1235, waitedMs: 0 },
  },
  {
    error: new LockNotAcquiredError({ keys: ['a', 'b'], retryAfterMs: 10, waitedMs: 5_000.4 }),
    body: {
      statusCode: 409,
      message: 'Somebody else is working on this right now. Try again later.',
      error: 'Conflict',
      code: 'LOCK_NOT_ACQUIRED',
    },
    detail:
      'Locks "a", "b" could not be acquired after waiting 5000 ms: held by another owner for up to 10 ms more. ' +
      'Try again later, or wait longer.',
    facts: { keys: ['a', 'b'], retryAfterMs: 10, waitedMs: 5_000.4 },
  },
  ...LOSS_SENTENCES.map(([reason, sentence]) => ({
    error: new LockLostError({ keys: ['order:42'], reason, fencingToken: 7 }),
    body: {
      statusCode: 409,
      message:
        'The lock was lost while the work ran. The work may have taken effect: check before you try again.',
      error: 'Conflict',
      code: 'LOCK_LOST' as const,
    },
    detail: `Lock "order:42" was lost: ${sentence}. ${LOST_END}`,
    facts: { keys: ['order:42'], reason, fencingToken: 7 },
  })),
  {
    error: new LockLostError({ keys: ['a', 'b'], reason: 'stolen' }),
    body: {
      statusCode: 409,
      message:
        'The lock was lost while the work ran. The work may have taken effect: check before you try again.',
      error: 'Conflict',
      code: 'LOCK_LOST',
    },
    detail: `Locks "a", "b" were lost: another owner holds it now. ${LOST_END}`,
    facts: { keys: ['a', 'b'], fencingToken: undefined },
  },
  {
    error: new LockStoreUnavailableError({
      operation: 'acquire',
      keys: ['order:42'],
      nodes: [
        { node: 'a:6379', kind: 'timeout', message: 'no answer within 50 ms' },
        { node: 'b:6379', kind: 'error', message: 'LOADING' },
      ],
    }),
    body: {
      statusCode: 503,
      message: 'The lock store is not available. Try again later.',
      error: 'Service Unavailable',
      code: 'LOCK_STORE_UNAVAILABLE',
    },
    detail:
      'Could not acquire "order:42": the lock store is not available ' +
      '(a:6379 (timeout): no answer within 50 ms; b:6379 (error): LOADING). ' +
      'No work ran without the lock. Check that Redis is reachable and try again.',
    facts: { keys: ['order:42'], nodes: [{ node: 'a:6379' }, { node: 'b:6379' }] },
  },
  {
    error: new LockWorkExhaustedError({ keys: ['email:42'], attempts: 3, lastError: 'no route' }),
    body: {
      statusCode: 409,
      message: 'This has been tried without success, and is not tried again.',
      error: 'Conflict',
      code: 'WORK_EXHAUSTED',
    },
    detail:
      'The work "email:42" is not tried any more, after 3 attempts. The last one ended with: no route',
    facts: { keys: ['email:42'], attempts: 3, lastError: 'no route' },
  },
  {
    error: new LockServiceClosedError(['order:42']),
    body: {
      statusCode: 503,
      message: 'The service is shutting down. Try again later.',
      error: 'Service Unavailable',
      code: 'LOCK_SERVICE_CLOSED',
    },
    detail:
      'Lock "order:42" was not acquired: this LockService is shutting down and grants no more locks.',
    facts: { keys: ['order:42'] },
  },
  {
    error: new LockKeyError({ problem: '<request.body.id> is missing', fromRequest: true }),
    body: {
      statusCode: 400,
      message: 'A value that identifies what to lock is missing or not valid.',
      error: 'Bad Request',
      code: 'LOCK_KEY_INVALID',
    },
    detail: '<request.body.id> is missing',
    facts: { fromRequest: true, keys: [] },
  },
  {
    error: new LockKeyError({ problem: '<orderId> is undefined' }),
    body: { ...INTERNAL, code: 'LOCK_KEY_INVALID' },
    message: 'A key that was to be locked is not valid.',
    detail: '<orderId> is undefined',
    facts: { fromRequest: false },
  },
  {
    error: new LockReentrancyError({ keys: ['a', 'b'], problem: 'holds only "a"' }),
    body: { ...INTERNAL, code: 'LOCK_REENTRANCY' },
    message: 'A lock was asked for inside a section that holds it, or a part of it.',
    detail: 'holds only "a"',
    facts: { keys: ['a', 'b'] },
  },
  {
    error: new LockDeadlockError({ keys: ['b', 'd'], circle: ['b', 'a'] }),
    body: {
      statusCode: 409,
      message: 'This operation and another one waited for each other. Try again later.',
      error: 'Conflict',
      code: 'LOCK_DEADLOCK',
    },
    detail:
      'Locks "b", "d" were not waited for, because that would never end: "b" is held by a call which waits for "a", held by this call. ' +
      'Take all of the keys in one call, or in the same order everywhere.',
    facts: { keys: ['b', 'd'], circle: ['b', 'a'] },
  },
  {
    error: new LockNotBoundError('no LockService'),
    body: { ...INTERNAL, code: 'LOCK_NOT_BOUND' },
    message: 'This needs a lock, and the application gives it none.',
    detail: 'no LockService',
  },
  {
    error: new LockReturnKindError('returned an Observable'),
    body: { ...INTERNAL, code: 'LOCK_RETURN_KIND' },
    message:
      'What ran under a lock did not return what it has to: a promise, or the kind of stream that it declares.',
    detail: 'returned an Observable',
  },
];

describe.each(cases.map((each) => [each.error.name, each] as const))('%s', (name, each) => {
  const { error, body, message = body.message, detail, facts = {} } = each;

  it(`answers ${String(body.statusCode)} ${body.code}, and tells logs: ${detail}`, () => {
    expect(error).toBeInstanceOf(HttpException);
    expect(error).toBeInstanceOf(LockError);
    expect(error.constructor.name).toBe(name);
    expect(error.getStatus()).toBe(body.statusCode);
    expect(error.getResponse()).toEqual(body);
    expect(error.code).toBe(body.code);
    error.addressClient();
    expect(error.message).toBe(message);
    expect(error.detail).toBe(detail);
    expect(JSON.parse(JSON.stringify(error))).toEqual(body);
    expect(error.stack).toContain(name);
    expect(error).toMatchObject(facts);
  });

  it('has a body without keys', () => {
    for (const key of error.keys)
      expect(JSON.stringify(error.getResponse())).not.toContain(key + '"');
  });
});

describe('LockError', () => {
  it('keeps the cause of a loss', () => {
    const cause = new Error('ECONNRESET');
    expect(new LockLostError({ keys: ['a'], reason: 'store-unavailable', cause }).cause).toBe(
      cause,
    );
    expect(new LockLostError({ keys: ['a'], reason: 'stolen' }).cause).toBeUndefined();
  });

  it('is presented once, however many hands it passes through', () => {
    const error = new LockServiceClosedError(['a']);
    error.presentAs((body) => ({ ...body, first: true }));
    error.presentAs((body) => ({ ...body, second: true }));
    expect(error.getResponse()).toMatchObject({ first: true });
    expect(error.getResponse()).not.toHaveProperty('second');
  });
});

describe('LockConfigurationError', () => {
  it('is a plain error of the programmer, no answer to a request', () => {
    const error = new LockConfigurationError('Option "ttl" …');
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(HttpException);
    expect(error.name).toBe('LockConfigurationError');
  });
});
