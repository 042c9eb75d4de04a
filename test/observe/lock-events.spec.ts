import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import { EVENTS } from '../../lib/observe/channels.js';
import type { CurrentEventName, LockEventName } from '../../lib/observe/lock-events.js';
import type { Log } from '../../lib/observe/log.js';
import { Recorder } from '../../lib/observe/recorder.js';
import { systemClock } from '../../lib/time/clock.js';

const CALL = { subject: { keys: ['key'], mode: 'exclusive' } } as const;

const FACTS = { retryAfterMs: 1, waitedMs: 0 };

const NAMES = Object.keys(EVENTS) as CurrentEventName[];

function setUp() {
  const logged: unknown[][] = [];
  const log: Log = { warn: () => undefined, error: (...said) => void logged.push(said) };
  const recorder = new Recorder(log, systemClock);
  return { recorder, logged };
}

describe('the events of locks', () => {
  it.each(NAMES)('reach those who listen to them (%s), and nobody else', (name) => {
    const { recorder } = setUp();
    const heard: unknown[] = [];
    recorder.on(name, (event) => void heard.push(event));
    for (const each of NAMES) recorder.emit(each, CALL, { name: each });
    expect(heard).toEqual([{ ...CALL.subject, name }]);
  });

  it('of another name do not exist', () => {
    const { recorder } = setUp();
    const listen = (): unknown => recorder.on('taken' as LockEventName, () => undefined);
    expect(listen).toThrow(LockConfigurationError);
    expect(listen).toThrow(
      'There is no event "taken". The events are waiting, acquired, refused, unavailable, renewed, jeopardy, lost, released, detached, attached, handedOff, limitMismatch, onceAttempt.',
    );
  });

  it('reach a listener as often as it was added, until it is taken away as often', () => {
    const { recorder } = setUp();
    const heard: unknown[] = [];
    const listener = (event: unknown): void => void heard.push(event);
    const [first, second] = [recorder.on('refused', listener), recorder.on('refused', listener)];
    recorder.emit('refused', CALL, FACTS);
    expect(heard).toHaveLength(2);
    first();
    first();
    recorder.emit('refused', CALL, FACTS);
    expect(heard).toHaveLength(3);
    second();
    recorder.emit('refused', CALL, FACTS);
    expect(heard).toHaveLength(3);
  });

  it('are heard as long as somebody listens', () => {
    const { recorder } = setUp();
    expect(recorder.isHeard('refused')).toBe(false);
    const stop = recorder.on('refused', () => undefined);
    expect(recorder.isHeard('refused')).toBe(true);
    expect(recorder.isHeard('lost')).toBe(false);
    stop();
    expect(recorder.isHeard('refused')).toBe(false);
  });

  it('reach the other listeners when one of them throws, which is logged', () => {
    const { recorder, logged } = setUp();
    const heard: unknown[] = [];
    const error = new Error('mine');
    recorder.on('refused', () => {
      throw error;
    });
    recorder.on('refused', (event) => void heard.push(event));
    recorder.emit('refused', CALL, FACTS);
    expect(heard).toEqual([{ ...CALL.subject, ...FACTS }]);
    expect(logged).toEqual([['A listener of the "refused" event threw', error]]);
  });

  it('disturb nothing when an async listener rejects, which is logged', async () => {
    const { recorder, logged } = setUp();
    const error = new Error('mine');
    const listener = (): unknown => Promise.reject(error);
    recorder.on('refused', listener);
    recorder.emit('refused', CALL, FACTS);
    await Promise.resolve();
    expect(logged).toEqual([['A listener of the "refused" event threw', error]]);
  });
});
