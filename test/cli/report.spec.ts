import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  LockConfigurationError,
  LockKeyError,
  LockStoreUnavailableError,
} from '../../lib/errors.js';
import { report } from '../../packages/cli/lib/report.js';
import { systemRuntime } from '../../packages/cli/lib/runtime.js';
import { UsageError } from '../../packages/cli/lib/usage-error.js';
import { FakeTerminal } from './program.js';

/** What is printed of an error, and the exit code. */
function reported(error: unknown, settings: Partial<FakeTerminal> = {}) {
  const terminal = Object.assign(new FakeTerminal(), settings);
  const code = report(error, terminal);
  expect(terminal.stdout).toBe('');
  return { code, stderr: terminal.stderr };
}

const URL = 'redis://me:topsecret@one:6379';

describe('an error', () => {
  it('of the command line comes with where to look', () => {
    expect(reported(new UsageError(`No: ${URL}.`))).toEqual({
      code: 2,
      stderr: 'error: No: redis://***@one:6379.\nSee nestjs-holdfast --help.\n',
    });
    expect(reported(new UsageError('No.'), { env: { npm_command: 'exec' } }).stderr).toBe(
      'error: No.\nSee npx @nestjs-holdfast/cli --help.\n',
    );
  });

  it('of what was given to the library is wrong usage, too', () => {
    expect(reported(new LockConfigurationError('Option "redis" is wrong.'))).toEqual({
      code: 2,
      stderr: 'error: Option "redis" is wrong.\n',
    });
    expect(reported(new LockKeyError({ problem: 'The key "a{b" contains a brace.' }))).toEqual({
      code: 2,
      stderr: 'error: The key "a{b" contains a brace.\n',
    });
  });

  it('of Redis has an exit code of its own', () => {
    const nodes = [{ node: 'one:6379', kind: 'connection', message: 'ECONNREFUSED' }] as const;
    const error = new LockStoreUnavailableError({ operation: 'list', keys: [], nodes });
    expect(reported(error)).toEqual({ code: 3, stderr: `error: ${error.detail}\n` });
    expect(error.detail).toContain('one:6379');
  });

  it('that is a fault of the program is printed whole, without passwords', () => {
    const error = new TypeError(`planted\x1b at ${URL}`);
    const { code, stderr } = reported(error);
    expect(code).toBe(70);
    expect(stderr.split('\n')).toEqual([
      'TypeError: planted\\u{1b} at redis://***@one:6379',
      ...(error.stack ?? '').split('\n').slice(1),
      '',
    ]);
    expect(stderr).toMatch(/report\.spec\.ts:\d+/);
  });

  it('without a stack is its message, and may be any value', () => {
    const bare = Object.assign(new Error('planted'), { stack: undefined });
    expect(reported(bare)).toEqual({ code: 70, stderr: 'planted\n' });
    expect(reported('planted')).toEqual({ code: 70, stderr: 'planted\n' });
  });

  it('is red on a terminal', () => {
    const { stderr } = reported(new UsageError('No.'), { isTty: true });
    expect(stderr.split('\n')[0]).toBe('\x1b[31merror:\x1b[39m No.');
  });
});

describe('the time of the program', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is that of the process', () => {
    jest.useFakeTimers({ now: 7_000 });
    const from = systemRuntime.now();
    jest.advanceTimersByTime(1_000);
    const until = systemRuntime.now();
    expect([from.wallMs, until.wallMs]).toEqual([7_000, 8_000]);
    expect(until.monotonicMs - from.monotonicMs).toBe(1_000);
  });

  it('calls back once, unless that is cancelled', () => {
    jest.useFakeTimers();
    const called: string[] = [];
    systemRuntime.setTimer(() => called.push('one'), 100);
    const cancel = systemRuntime.setTimer(() => called.push('two'), 100);
    cancel();
    jest.advanceTimersByTime(99);
    expect(called).toEqual([]);
    jest.advanceTimersByTime(1_000);
    expect(called).toEqual(['one']);
  });
});
