import type { PlantedBug } from './planted-bug.js';

const MAJORITY = 'a client that has a majority of the N servers holds the lock';

export const QUORUM: readonly PlantedBug[] = [
  {
    name: 'half-is-enough',
    file: 'lib/store/redis/quorum/poll.ts',
    find: 'Math.floor(nodes / 2) + 1',
    replace: 'Math.floor(nodes / 2)',
    profile: 'quorum',
    explanation: 'N/2 votes are enough.',
    breaks: MAJORITY,
  },
  {
    name: 'silent-votes-counted',
    file: 'lib/store/redis/quorum/votes.ts',
    find: 'if (yes.length >= quorum) {',
    replace:
      "if (yes.length > 0 && votes.filter((vote) => vote?.status !== 'refused' && vote !== undefined).length >= quorum) {",
    profile: 'quorum',
    explanation: 'A node that did not answer in time counts as one that has voted.',
    breaks: MAJORITY,
  },
  {
    name: 'votes-not-withdrawn',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: "if (outcome.status === 'held') await this.#withdraw(request, answers);",
    replace: '',
    profile: 'quorum',
    explanation: 'Votes that were not enough stay where they are.',
    breaks: 'all callers withdraw their votes and ask again after a random pause',
  },
  {
    name: 'withdrawal-not-awaited',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: "if (outcome.status === 'held') await this.#withdraw(request, answers);",
    replace:
      "if (outcome.status === 'held') this.#deps.runtime.setTimer(() => void this.#withdraw(request, answers), 1_000);",
    profile: 'quorum',
    explanation: 'The next try goes out ahead of the withdrawal of the last.',
    breaks: 'all callers withdraw their votes and ask again after a random pause',
  },
  {
    name: 'late-vote-not-removed',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: 'if (!isGone && !wasNeverSent) this.#deps.leftOvers.remove(node, request);',
    replace: '',
    profile: 'quorum',
    explanation: 'A vote that comes after the decision stays.',
    breaks: 'a late vote is removed when it arrives',
  },
  {
    name: 'released-lease-healed',
    file: 'lib/store/redis/quorum/standing-leases.ts',
    find: "if (state === 'over' || leftMs <= 0 || this.#closed) return undefined;",
    replace: 'if (leftMs <= 0) return undefined;',
    profile: 'quorum',
    explanation: 'A lease that was given back is still brought to the nodes that did not have it.',
    breaks: 'unless another caller was granted it there since, or it was released',
  },
  {
    name: 'bare-majority-kept-bare',
    file: 'lib/store/redis/quorum/standing-leases.ts',
    find: "if (vote?.status !== 'granted') this.bringTo(node, standing);",
    replace: "if (vote?.status !== 'granted') return;",
    profile: 'quorum',
    explanation: 'A lease that a bare majority has is not brought to the other nodes.',
    breaks:
      'The holder brings the lock to such a node after 50 ms, and again at least every 2 to 4 s for as long as it holds it',
  },
  {
    name: 'quorum-line-not-woken',
    file: 'lib/store/redis/scripts/release.ts',
    find: "if (is_sooner or not holder) and line == 'quorum' and wakes ~= 'nobody' then",
    replace: "if (is_sooner or not holder) and line == 'never' then",
    profile: 'quorum',
    explanation: 'A release over several masters wakes nobody.',
    breaks: 'A release wakes the processes in line, on every node, 10 ms after each other',
  },
];
