import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { poll, quorumOf, type Poll } from '../../lib/store/redis/quorum/poll.js';
import { deferred, type Deferred } from '../support/eventually.js';
import { settled } from '../support/virtual-runtime.js';

interface Voter {
  readonly isSilent: boolean;
  readonly answer: Deferred<string>;
}

const voter = (isSilent = false): Voter => ({ isSilent, answer: deferred<string>() });

/** Decided as soon as nobody is waited for any more. */
function ask(nodes: readonly Voter[]): {
  readonly decision: Promise<Poll<string, string>>;
  readonly outcome: () => string | undefined;
} {
  let outcome: string | undefined;
  const decision = poll(
    nodes,
    quorumOf(nodes.length),
    (node) => node.answer.promise,
    (answers, awaited) => (awaited === 0 ? answers.map((each) => each ?? '-').join('') : undefined),
  );
  void decision.then((result) => (outcome = result.outcome));
  return { decision, outcome: () => outcome };
}

describe('poll', () => {
  it('asks all nodes at once, the silent ones too', () => {
    const asked: number[] = [];
    void poll(
      [{ isSilent: false }, { isSilent: true }, { isSilent: false }],
      2,
      async (node) => void asked.push(node.isSilent ? 1 : 0),
      () => 'decided',
    );
    expect(asked).toEqual([0, 1, 0]);
  });

  it('decides with the answers so far, and gives those that come later in the end', async () => {
    const nodes = [voter(), voter(), voter()];
    const decision = poll(
      nodes,
      2,
      (node) => node.answer.promise,
      (answers) => (answers.filter((each) => each === 'yes').length >= 2 ? 'granted' : undefined),
    );
    nodes[2]?.answer.resolve('yes');
    nodes[0]?.answer.resolve('yes');
    const { outcome, answers, complete } = await decision;
    expect(outcome).toBe('granted');
    expect(answers).toEqual(['yes', undefined, 'yes']);
    nodes[1]?.answer.resolve('no');
    expect(await complete).toEqual(['yes', 'no', 'yes']);
    // What was decided was decided with these.
    expect(answers).toEqual(['yes', undefined, 'yes']);
  });

  it('does not wait for a node that is silent, when the others are a majority', async () => {
    const [first, silent, third] = [voter(), voter(true), voter()];
    const { decision, outcome } = ask([first, silent, third]);
    first.answer.resolve('a');
    await settled();
    expect(outcome()).toBeUndefined();
    third.answer.resolve('c');
    expect((await decision).outcome).toBe('a-c');
    silent.answer.resolve('b');
    expect(await (await decision).complete).toEqual(['a', 'b', 'c']);
  });

  it('counts the answer of a silent node that comes before the matter is decided', async () => {
    const [first, silent, third] = [voter(), voter(true), voter()];
    const { decision } = ask([first, silent, third]);
    silent.answer.resolve('b');
    await settled();
    first.answer.resolve('a');
    third.answer.resolve('c');
    expect((await decision).outcome).toBe('abc');
  });

  it('waits for silent nodes when the others are no majority', async () => {
    const [first, second, third] = [voter(), voter(true), voter(true)];
    const { decision, outcome } = ask([first, second, third]);
    first.answer.resolve('a');
    second.answer.resolve('b');
    await settled();
    expect(outcome()).toBeUndefined();
    third.answer.resolve('c');
    expect((await decision).outcome).toBe('abc');
  });

  it('fails if a node cannot be asked, and decides nothing from the others', async () => {
    const nodes = [voter(), voter(), voter()];
    const decided: string[] = [];
    const failing = async (): Promise<unknown> =>
      poll(
        nodes,
        2,
        (node) => {
          if (node === nodes[2]) throw new Error('cannot be asked');
          return node.answer.promise;
        },
        (answers) => {
          decided.push(answers.join());
          return 'decided';
        },
      );
    await expect(failing()).rejects.toThrow('cannot be asked');
    for (const { answer } of nodes) answer.resolve('yes');
    await settled();
    expect(decided).toEqual([]);
  });

  it('waits for the only node, silent or not', async () => {
    const silent = voter(true);
    const { decision, outcome } = ask([silent]);
    await settled();
    expect(outcome()).toBeUndefined();
    silent.answer.resolve('a');
    expect((await decision).outcome).toBe('a');
  });

  it('waits for all or for those that are not silent, whatever the order of the answers', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }).chain((silences) =>
          fc.record({
            silences: fc.constant(silences),
            order: fc.shuffledSubarray([...silences.keys()], { minLength: silences.length }),
          }),
        ),
        async ({ silences, order }) => {
          const nodes = silences.map((isSilent) => voter(isSilent));
          const loud = silences.filter((isSilent) => !isSilent).length;
          const waitsForAll = loud < quorumOf(silences.length);
          const owed = new Set(order.filter((index) => waitsForAll || silences[index] === false));
          const { outcome } = ask(nodes);
          for (const index of order) {
            expect(outcome()).toBe(undefined);
            nodes[index]?.answer.resolve('x');
            owed.delete(index);
            await settled();
            if (owed.size === 0) break;
          }
          expect(outcome()).toBeDefined();
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('quorumOf', () => {
  it('is the smallest number of nodes of which any two sets have one in common', () => {
    for (let nodes = 1; nodes <= 9; nodes += 1) {
      const quorum = quorumOf(nodes);
      expect(2 * quorum).toBeGreaterThan(nodes);
      expect(2 * (quorum - 1)).toBeLessThanOrEqual(nodes);
    }
  });
});
