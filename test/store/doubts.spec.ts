import { describe, expect, it, jest } from '@jest/globals';
import type { Unavailable } from '../../lib/store/lock-store.js';
import { NodeLooks } from '../../lib/store/redis/node/node-looks.js';
import type { Server } from '../../lib/store/redis/node/server.js';
import { systemRuntime } from '../../lib/time/runtime.js';

type Kind = Unavailable['nodes'][number]['kind'];

interface State {
  readonly client?: 'single' | 'cluster';
  readonly isThere?: boolean;
  readonly isWell?: boolean;
}

/** The looks at a node in that state, and what they have its watch and its connection do. */
function looksAt({ client = 'single', isThere = true, isWell = true }: State) {
  const doubted = jest.fn();
  const setAside = jest.fn();
  const warn = jest.fn();
  const server = {
    name: 'one:6379',
    connection: { client: { kind: client }, isThere, setAside },
    watch: { isWell, doubted },
    options: { warn },
    runtime: systemRuntime,
  };
  const looks = new NodeLooks(server as unknown as Server);
  return { looks, doubted, setAside, warn };
}

const failed = (kind: Kind | undefined, transient = false): Unavailable => ({
  status: 'unavailable',
  nodes: kind === undefined ? [] : [{ node: 'one:6379', kind, message: 'OOM' }],
  transient,
});

describe('after a request that failed, a server', () => {
  it.each<[string, Kind | undefined, State]>([
    ['answered with an error', 'error', {}],
    ['answered too late', 'timeout', {}],
    ['says nothing of the reason', undefined, {}],
    ['has lost the connection of one node of a Cluster', 'connection', { client: 'cluster' }],
  ])('is examined when it %s', (_, kind, state) => {
    const { looks, doubted } = looksAt(state);
    looks.doubtAfter(failed(kind));
    expect(doubted.mock.calls).toEqual([['for good']]);
  });

  it('is examined later when the failure may pass by itself', () => {
    const { looks, doubted } = looksAt({});
    looks.doubtAfter(failed('error', true));
    expect(doubted.mock.calls).toEqual([['for a moment']]);
  });

  it.each<[string, Kind, State]>([
    ['its connection has ended, which is logged', 'connection', {}],
    ['it is not connected', 'error', { isThere: false }],
    ['something is known to be wrong with it', 'error', { isWell: false }],
  ])('is not examined when %s', (_, kind, state) => {
    const { looks, doubted } = looksAt(state);
    looks.doubtAfter(failed(kind));
    expect(doubted).not.toHaveBeenCalled();
  });

  it('is not examined while it has no vote, because it is the same server as another', () => {
    const { looks, doubted, setAside, warn } = looksAt({});
    looks.setAside('two:6379');
    looks.doubtAfter(failed('error'));
    expect(doubted).not.toHaveBeenCalled();
    expect(setAside.mock.lastCall).toEqual(['is the same server as two:6379']);
    expect(warn.mock.calls).toEqual([
      ['Redis at one:6379 is the same server as two:6379: it has one vote, not two.'],
    ]);

    looks.setAside('two:6379');
    expect(warn).toHaveBeenCalledTimes(1);
    looks.setAside(undefined);
    expect(setAside.mock.lastCall).toEqual([undefined]);
    expect(warn).toHaveBeenCalledTimes(1);
    looks.doubtAfter(failed('error'));
    expect(doubted).toHaveBeenCalledTimes(1);
  });
});
