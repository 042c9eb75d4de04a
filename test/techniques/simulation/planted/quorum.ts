import type { PlantedBug } from './planted-bug.js';

const MAJORITY = 'a client holds a lock when a majority of the servers has granted it';

export const QUORUM: readonly PlantedBug[] = [
  {
    name: 'half-is-enough',
    file: 'lib/store/redis/quorum/poll.ts',
    find: 'Math.floor(nodes / 2) + 1',
    replace: 'Math.floor(nodes / 2)',
    profile: 'quorum',
    explanation: 'N/2 votes of N masters count as a majority.',
    breaks: MAJORITY,
  },
  {
    name: 'silent-votes-counted',
    file: 'lib/store/redis/quorum/votes.ts',
    find: 'if (yes.length >= quorum) {',
    replace:
      "if (yes.length > 0 && votes.filter((vote) => vote?.status !== 'refused' && vote !== undefined).length >= quorum) {",
    profile: 'quorum',
    explanation: 'A node that did not reply in time counts as one that has granted the lock.',
    breaks: MAJORITY,
  },
  {
    name: 'votes-not-withdrawn',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: "if (outcome.status === 'held') await this.#withdraw(request, answers);",
    replace: '',
    profile: 'quorum',
    explanation: 'If the votes are not enough, they are not withdrawn.',
    breaks: 'all callers withdraw their votes and ask again after a random pause',
  },
  {
    name: 'withdrawal-not-awaited',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: "if (outcome.status === 'held') await this.#withdraw(request, answers);",
    replace:
      "if (outcome.status === 'held') this.#voters[0]?.runtime.setTimer(() => void this.#withdraw(request, answers), 1_000);",
    profile: 'quorum',
    explanation: 'The next try is sent before the votes of the previous try are withdrawn.',
    breaks: 'all callers withdraw their votes and ask again after a random pause',
  },
  {
    name: 'late-vote-not-removed',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: 'if (!isGone && !wasNeverSent) voter.remove(request);',
    replace: '',
    profile: 'quorum',
    explanation: 'A vote that arrives after the decision is not removed.',
    breaks: 'a late vote is removed when it arrives',
  },
  {
    name: 'released-lease-healed',
    file: 'lib/store/redis/quorum/voter.ts',
    find: "if (state === 'over' || leftMs <= 0 || this.#isClosing) return undefined;",
    replace: 'if (leftMs <= 0) return undefined;',
    profile: 'quorum',
    explanation: 'A released lease is still added to the nodes that did not have it.',
    breaks: 'unless another caller was granted it there since, or it was released',
  },
  {
    name: 'bare-majority-kept-bare',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: "if (votes[index]?.status !== 'granted') voter.bring(standing);",
    replace: 'void [voter, index];',
    profile: 'quorum',
    explanation:
      'A lease that only a bare majority has (no spare node) is not added to the other nodes.',
    breaks: 'The holder tries again at least every 2 to 4 s for as long as it holds the lock',
  },
  {
    name: 'quorum-line-not-woken',
    file: 'lib/store/redis/lua/release.lua',
    find: "if (is_sooner or not holder) and line == 'quorum' and wakes ~= 'nobody' then",
    replace: "if (is_sooner or not holder) and line == 'never' then",
    profile: 'quorum',
    explanation: 'With several masters, a release wakes no waiting caller.',
    breaks: 'A release wakes the processes in line, on every node, 10 ms after each other',
  },
];
