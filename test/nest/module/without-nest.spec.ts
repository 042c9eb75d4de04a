import { describe, expect, it } from '@jest/globals';
import { HttpException } from '@nestjs/common';
import { LockKeyError } from 'nestjs-holdfast';
import { ChildScript } from '../../support/child-script.js';

const BODY = {
  statusCode: 409,
  message: 'Somebody else is working on this right now. Try again later.',
  error: 'Conflict',
  code: 'LOCK_NOT_ACQUIRED',
};

describe('the engine', () => {
  it('locks, refuses and shuts down where Nest cannot be loaded', async () => {
    const script = new ChildScript(new URL('./without-nest-process.ts', import.meta.url), []);
    expect(JSON.parse(await script.output)).toEqual({
      status: 409,
      code: BODY.code,
      name: 'LockNotAcquiredError',
      message: 'The lock is held by another caller.',
      hasMessage: true,
      hasDetail: true,
      json: BODY,
      hasQuorum: true,
      isHeld: false,
      // The lock that the shutdown ended: what it waited for, and that it was lost.
      said: 2,
    });
  });
});

describe('an error of the engine', () => {
  it('is an HttpException where Nest is', () => {
    const cause = new Error('the cause');
    const error = new LockKeyError({ problem: 'no key', fromRequest: true });
    expect(error).toBeInstanceOf(HttpException);
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.getStatus()).toBe(400);
    expect(error.name).toBe('LockKeyError');
    expect(error.message).toBe('A key that was to be locked is not valid.');
    expect(error.detail).toBe('no key');
    error.cause = cause;
    expect(error.cause).toBe(cause);
  });
});
