import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import { EVENTS } from '../../lib/observe/channels.js';
import { LockEventHub, type LockEventName } from '../../lib/observe/lock-events.js';

const REFUSED = { keys: ['key'], mode: 'exclusive', retryAfterMs: 1, waitedMs: 0 } as const;

const NAMES = Object.keys(EVENTS) as LockEventName[];

function setUp() {
  const logged: unknown[][] = [];
  const hub = new LockEventHub({
    warn: () => undefined,
    error: (...said) => void logged.push(said),
  });
  return { hub, logged };
}

describe('the events of locks', () => {
  it.each(NAMES)('reach those who listen to them (%s), and nobody else', (name) => {
    const { hub } = setUp();
    const heard: unknown[] = [];
    hub.on(name, (event) => void heard.push(event));
    for (const each of NAMES) hub.emit(each, { name: each } as never);
    expect(heard).toEqual([{ name }]);
  });

  it('of another name do not exist', () => {
    const { hub } = setUp();
    const listen = (): unknown => hub.on('taken' as LockEventName, () => undefined);
    expect(listen).toThrow(LockConfigurationError);
    expect(listen).toThrow(
      'There is no event "taken". The events are waiting, acquired, refused, unavailable, renewed, jeopardy, lost, released, detached, attached, handedOn, limitsDiffer, once.',
    );
  });

  it('reach a listener as often as it was added, until it is taken away as often', () => {
    const { hub } = setUp();
    const heard: unknown[] = [];
    const listener = (event: unknown): void => void heard.push(event);
    const [first, second] = [hub.on('refused', listener), hub.on('refused', listener)];
    hub.emit('refused', REFUSED);
    expect(heard).toHaveLength(2);
    first();
    first();
    hub.emit('refused', REFUSED);
    expect(heard).toHaveLength(3);
    second();
    hub.emit('refused', REFUSED);
    expect(heard).toHaveLength(3);
  });

  it('are heard as long as somebody listens', () => {
    const { hub } = setUp();
    expect(hub.isHeard('refused')).toBe(false);
    const stop = hub.on('refused', () => undefined);
    expect(hub.isHeard('refused')).toBe(true);
    expect(hub.isHeard('lost')).toBe(false);
    stop();
    expect(hub.isHeard('refused')).toBe(false);
  });

  it('reach the other listeners when one of them throws, which is logged', () => {
    const { hub, logged } = setUp();
    const heard: unknown[] = [];
    const error = new Error('mine');
    hub.on('refused', () => {
      throw error;
    });
    hub.on('refused', (event) => void heard.push(event));
    hub.emit('refused', REFUSED);
    expect(heard).toEqual([REFUSED]);
    expect(logged).toEqual([['A listener of the "refused" event threw', error]]);
  });
});
