import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-holdfast';
import { Members } from '../../lib/store/redis/quorum/members.js';
import type { Voter } from '../../lib/store/redis/quorum/voter.js';

/** A node whose server the test names. */
class FakeNode {
  run: string | undefined;
  twin: string | undefined;
  readonly looks = {
    setAside: (twin: string | undefined): void => {
      this.twin = twin;
    },
  };

  constructor(readonly name: string) {}
}

function nodes() {
  const all = ['a', 'b', 'c'].map((name) => new FakeNode(name)) as [FakeNode, FakeNode, FakeNode];
  const members = new Members(all as unknown as readonly Voter[]);
  /** One of them has reached this server; which nodes are set aside then, and for which. */
  const reached = (node: FakeNode, run: string | undefined) => {
    node.run = run;
    members.setTwinsAside();
    return all.map(({ twin }) => twin);
  };
  return { all, members, reached };
}

describe('of several nodes that lead to one server', () => {
  it('only the one that reached it first has a vote, wherever it is in the list', () => {
    const { all, reached } = nodes();
    const [a, b, c] = all;
    expect(reached(b, 'one')).toStrictEqual([undefined, undefined, undefined]);
    expect(reached(a, 'one')).toEqual(['b', undefined, undefined]);
    expect(reached(c, 'other')).toEqual(['b', undefined, undefined]);
    expect(reached(c, 'one')).toEqual(['b', undefined, 'b']);
  });

  it('another has the vote when that one leads elsewhere', () => {
    const { all, reached } = nodes();
    const [a, b] = all;
    reached(b, 'one');
    reached(a, 'one');
    expect(reached(b, 'other')).toStrictEqual([undefined, undefined, undefined]);
    expect(reached(b, 'one')).toStrictEqual([undefined, 'a', undefined]);
  });

  it('nodes whose servers do not tell which they are have a vote each', () => {
    const { all, reached, members } = nodes();
    for (const node of all)
      expect(reached(node, undefined)).toStrictEqual([undefined, undefined, undefined]);
    expect(() => members.expectDifferent('run')).not.toThrow();
  });

  it('a start names two of them', () => {
    const { all, members } = nodes();
    [all[1].run, all[2].run] = ['one', 'one'];
    expect(() => members.expectDifferent('run')).toThrow(LockConfigurationError);
    expect(() => members.expectDifferent('run')).toThrow(
      'Option "redis" lists one server twice: b and c. The nodes of a quorum have to fail',
    );
  });
});
