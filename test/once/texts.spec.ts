import { describe, expect, it } from '@jest/globals';
import { NonRetryableError } from '../../lib/once/attempt.js';
import { doneElsewhere, exhausted } from '../../lib/once/once-runner.js';
import { errorText, valueAsJson, valueOfJson } from '../../lib/once/texts.js';

/** What has no text. */
const WITHOUT_TEXT = Object.create(null) as object;

describe('the value of work', () => {
  it('is kept as JSON', () => {
    expect(valueAsJson({ a: [1, null] })).toEqual({ json: '{"a":[1,null]}' });
    expect(valueAsJson(null)).toEqual({ json: 'null' });
  });

  it('is not kept where there is none', () => {
    expect(valueAsJson(undefined)).toEqual({});
    expect(valueAsJson(() => 1)).toEqual({});
  });

  it('has up to 4,096 bytes', () => {
    const text = (bytes: number): string => 'é'.repeat((bytes - 2) / 2);
    expect(valueAsJson(text(4_096))).toEqual({ json: `"${text(4_096)}"` });
    expect(valueAsJson(text(4_098))).toEqual({
      problem: 'as JSON it has 4098 bytes, more than 4096',
    });
  });

  it('that is no JSON says why', () => {
    expect(valueAsJson(1n)).toEqual({
      problem: expect.stringMatching(/^it is no JSON \(.*BigInt.*\)$/),
    });
  });

  it('is read as it was kept; what others wrote is none', () => {
    expect(valueOfJson('{"a":1}')).toEqual({ value: { a: 1 } });
    expect(valueOfJson('null')).toEqual({ value: null });
    expect(valueOfJson(undefined)).toEqual({});
    expect(valueOfJson('{')).toEqual({});
  });
});

describe('the text of an error', () => {
  it('is its message, short and without secrets', () => {
    expect(errorText(new Error('mine'))).toBe('mine');
    expect(errorText(new Error('redis://user:secret@host'))).not.toContain('secret');
    expect(errorText('x'.repeat(1_000)).length).toBeLessThanOrEqual(200);
  });

  it('is there whatever was thrown', () => {
    expect(errorText('text')).toBe('text');
    expect(errorText(undefined)).toBe('undefined');
    expect(errorText(WITHOUT_TEXT)).toBe('an error without text');
  });

  it('of one that is not to be tried again has its name', () => {
    expect(String(new NonRetryableError('no stock'))).toBe('NonRetryableError: no stock');
  });
});

describe('the result for those who did not do the work', () => {
  it('has the value, or the error, where one was kept', () => {
    const done = { status: 'done', attempts: 2 } as const;
    expect(doneElsewhere({ ...done, value: '[1]' })).toEqual({
      outcome: 'done-elsewhere',
      attempts: 2,
      value: [1],
    });
    expect(doneElsewhere(done)).toStrictEqual({ outcome: 'done-elsewhere', attempts: 2 });
    const failed = { status: 'exhausted', attempts: 3 } as const;
    expect(exhausted({ ...failed, error: 'mine' })).toEqual({
      outcome: 'exhausted',
      attempts: 3,
      lastError: 'mine',
    });
    expect(exhausted(failed)).toStrictEqual({ outcome: 'exhausted', attempts: 3 });
  });
});
