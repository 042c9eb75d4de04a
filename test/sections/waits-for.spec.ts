import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockDeadlockError } from '../../lib/errors.js';
import { Section } from '../../lib/sections/section.js';
import { WaitsFor } from '../../lib/sections/waits-for.js';
import type { HoldMode } from '../../lib/store/owner-token.js';
import { stubLock } from './stub-lock.js';

const service = {};
let waitsFor: WaitsFor;

beforeEach(() => {
  waitsFor = new WaitsFor();
});

interface Hold {
  readonly keys: readonly string[];
  readonly mode?: HoldMode;
  readonly owner?: object;
}

const holdOf = (keys: readonly string[] | string): Hold => ({ keys: [keys].flat() });

/** A call inside sections that hold so much, the innermost last, begins to wait. Answers how it ends. */
function begin(
  holds: Hold | readonly Hold[] | string,
  keys: readonly string[] | string,
  { mode = 'exclusive', owner = service }: { mode?: HoldMode; owner?: object } = {},
): () => void {
  const sections = [typeof holds === 'string' ? holdOf(holds) : holds]
    .flat()
    .map((hold) => new Section(hold.owner ?? service, stubLock(hold), undefined));
  return waitsFor.begin({ owner, keys: [keys].flat(), mode, sections });
}

/** The circle that an error tells of, or `undefined` when the wait begins. */
function circleOf(...wait: Parameters<typeof begin>): readonly string[] | undefined {
  try {
    begin(...wait);
  } catch (error) {
    expect(error).toBeInstanceOf(LockDeadlockError);
    return (error as LockDeadlockError).circle;
  }
  return undefined;
}

describe('a wait that begins is refused', () => {
  it('when the holder of what it wants waits for what it holds', () => {
    begin('a', 'b');
    expect(() => begin('b', ['x', 'a'])).toThrow(
      expect.objectContaining({ code: 'LOCK_DEADLOCK', keys: ['x', 'a'], circle: ['a', 'b'] }),
    );
  });

  it('when the way back leads over several, and names their keys in the order of the way', () => {
    begin('a', 'b');
    begin('b', 'c');
    begin('c', 'd');
    begin('d', 'e');
    expect(circleOf('e', 'a')).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('when there are two ways back, with the shorter one', () => {
    begin('a', ['b', 'z']);
    begin('b', 'c');
    begin('c', 'z');
    expect(circleOf('z', 'a')).toEqual(['a', 'z']);
  });

  it('when one of its sections holds the key, whichever it is', () => {
    begin([holdOf('x'), holdOf(['y', 'a']), holdOf('w')], 'b');
    expect(circleOf([holdOf('u'), holdOf(['v', 'b']), holdOf('t')], 'a')).toEqual(['a', 'b']);
  });

  it('when two ways part and meet again before they lead back, with the first one', () => {
    begin('a', ['b', 'c']);
    begin('b', 'd');
    begin('c', 'd');
    begin('d', 'e');
    expect(circleOf('e', 'a')).toEqual(['a', 'b', 'd', 'e']);
  });

  it.each([
    { held: 'exclusive', wanted: 'exclusive' },
    { held: 'exclusive', wanted: 'shared' },
    { held: 'shared', wanted: 'exclusive' },
    { held: 'shared', wanted: 'limit:2' },
    { held: 'limit:2', wanted: 'shared' },
  ] as const)('when it wants as $wanted what is held as $held', ({ held, wanted }) => {
    begin({ keys: ['a'], mode: held }, 'b');
    expect(circleOf('b', 'a', { mode: wanted })).toEqual(['a', 'b']);
  });

  it('when it holds as shared what another one wants alone', () => {
    begin('a', 'b');
    expect(circleOf({ keys: ['b'], mode: 'shared' }, 'a')).toEqual(['a', 'b']);
  });
});

describe('a wait begins', () => {
  it('when nobody waits', () => {
    expect(circleOf('a', 'b')).toBeUndefined();
  });

  it('for a key that one of its own sections holds: others do not wait for it', () => {
    expect(circleOf('a', 'a')).toBeUndefined();
  });

  it('at the end of a chain that does not lead back', () => {
    begin('b', 'c');
    begin('c', 'd');
    expect(circleOf('a', 'b')).toBeUndefined();
  });

  it.each(['shared', 'limit:2'] as const)(
    'when it wants as %s what a caller that waits for it holds so too',
    (mode) => {
      begin({ keys: ['a'], mode }, 'b');
      expect(circleOf('b', 'a', { mode })).toBeUndefined();
    },
  );

  it('when it holds as shared what the other one wants as shared', () => {
    begin('a', 'b', { mode: 'shared' });
    expect(circleOf({ keys: ['b'], mode: 'shared' }, 'a')).toBeUndefined();
  });

  it('when the key is one of another service', () => {
    begin({ keys: ['a'], owner: {} }, 'b');
    expect(circleOf('b', 'a')).toBeUndefined();
  });

  it('when the wait that would close the circle is over', () => {
    const end = begin('a', 'b');
    end();
    expect(circleOf('b', 'a')).toBeUndefined();
  });

  it('when the wait that would close the circle is over, and another one goes on', () => {
    begin('a', 'x');
    const end = begin('a', 'b');
    end();
    expect(circleOf('b', 'a')).toBeUndefined();
  });
});

describe('the end of a wait', () => {
  it('leaves the others who hold the same key', () => {
    const end = begin({ keys: ['a'], mode: 'shared' }, 'x');
    begin({ keys: ['a'], mode: 'shared' }, 'b');
    end();
    expect(circleOf('b', 'a')).toEqual(['a', 'b']);
  });

  it('may be told twice', () => {
    const end = begin(['a', 'x'].map(holdOf), 'b');
    end();
    end();
    begin('a', 'b');
    end();
    expect(circleOf('b', 'a')).toEqual(['a', 'b']);
  });

  it('leaves nothing behind of its keys', () => {
    const before = heapInUse();
    for (let i = 0; i < 50_000; i += 1) begin(`a${String(i)}`, 'b')();
    expect(heapInUse() - before).toBeLessThan(3_000_000);
  });
});

/** Bytes that are still needed. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
