import { USUAL, type Action, type Setup, type Step } from './setup.js';

/** A prepared world. */
export interface PreparedScenario {
  readonly name: string;
  readonly title: string;
  /** What to look for, in two sentences. */
  readonly look: string;
  readonly setup: Setup;
  readonly steps: readonly Step[];
  /** How much of it is worth seeing, in ms. */
  readonly lengthMs: number;
}

const at = (atMs: number, action: Action): Step => ({ atMs, action });

const locks = (
  process: number,
  workMs: number,
  more: { readonly isCareless?: true } = {},
): Action => ({ kind: 'lock', process, mode: 'exclusive', workMs, ...more });

export const SCENARIOS: readonly PreparedScenario[] = [
  {
    name: 'hand-over',
    title: 'The lock is handed over in the line',
    look:
      'When p0 releases the key, Redis gives it to the next process in line in the same step, so the key is never free. ' +
      'Each holder has a larger fencing token than the one before, and no process polls.',
    setup: { ...USUAL, processes: 4 },
    steps: [
      at(500, locks(0, 2_000)),
      at(1_000, locks(1, 1_500)),
      at(1_500, locks(2, 1_500)),
      at(2_000, locks(3, 1_500)),
    ],
    lengthMs: 8_500,
  },
  {
    name: 'holder-dies',
    title: 'The holder dies',
    look:
      'Redis keeps the key of the dead process until its TTL of 5 s is over, because Redis cannot know that p0 has died. ' +
      'Then the next process in line gets the key.',
    setup: USUAL,
    steps: [
      at(500, locks(0, 20_000)),
      at(1_000, locks(1, 2_000)),
      at(1_500, locks(2, 2_000)),
      at(3_000, { kind: 'kill', process: 0 }),
    ],
    lengthMs: 14_000,
  },
  {
    name: 'holder-paused',
    title: 'The holder is paused for longer than its TTL',
    look:
      'Process p0 is paused between its last check of the lock and its write. When the lease of p0 is over, p1 gets the key. ' +
      'When p0 resumes, the library reports the loss, and the database refuses the late write, because its fencing token is too small.',
    setup: { ...USUAL, processes: 2 },
    steps: [
      at(500, locks(0, 3_000, { isCareless: true })),
      at(1_500, { kind: 'pause', process: 0, forMs: 9_000 }),
      at(2_000, locks(1, 2_000)),
    ],
    lengthMs: 13_000,
  },
  {
    name: 'data-lost',
    title: 'Redis restarts without its data',
    look:
      'Redis has forgotten the lock of p0, so p1 gets the key while p0 still works. For a moment, two processes hold it. ' +
      'The next renewal of p0 detects the loss. A database that checks tokens is safe, because the token of p1 is larger.',
    setup: { ...USUAL, processes: 2 },
    steps: [
      at(500, locks(0, 6_000)),
      at(1_000, locks(1, 3_000)),
      at(2_400, { kind: 'stop', node: 0, data: 'lost' }),
      at(2_600, { kind: 'start', node: 0 }),
    ],
    lengthMs: 9_000,
  },
  {
    name: 'node-down',
    title: 'One of three nodes is down',
    look:
      'Two of three servers are a majority, so locks are granted, renewed and handed over as before. ' +
      'When the third server is back, the next renewal or grant writes the key there, too.',
    setup: { ...USUAL, nodes: 3 },
    steps: [
      at(500, { kind: 'stop', node: 2, data: 'kept' }),
      at(1_000, locks(0, 3_000)),
      at(1_500, locks(1, 8_000)),
      at(5_500, { kind: 'start', node: 2 }),
      // A client that has tried for 5 s tries again after 2 s at the latest, and the next renewal is 2 s later.
      at(10_500, locks(2, 1_500)),
    ],
    lengthMs: 15_000,
  },
  {
    name: 'majority-cut',
    title: 'The network is cut between the holder and the majority',
    look:
      'The renewals of p0 reach only one server of three, so p0 loses the lock at the end of its validity, and stops. ' +
      'The majority keeps the key a little longer than p0 relies on it, so p1 gets the key only after p0 has stopped.',
    setup: { ...USUAL, nodes: 3, processes: 2 },
    steps: [
      at(500, locks(0, 20_000)),
      at(1_500, locks(1, 2_500)),
      at(3_000, { kind: 'cut', process: 0, node: 0 }),
      at(3_000, { kind: 'cut', process: 0, node: 1 }),
      at(12_000, { kind: 'join', process: 0, node: 0 }),
      at(12_000, { kind: 'join', process: 0, node: 1 }),
    ],
    lengthMs: 14_000,
  },
];

export const scenarioNamed = (name: string): PreparedScenario | undefined =>
  SCENARIOS.find((scenario) => scenario.name === name);
