import type { PlantedBug } from './planted-bug.js';

const LEADERSHIP = 'lib/leader/leadership.ts';
const END =
  'It waits until the work has ended, and then releases the leadership. So the work of two terms overlaps only if the leadership was lost.';
const TOLD = 'Holdfast calls `onLost` with the reason, once for each call of `onElected`.';
const ROTATES =
  'After this time, the leader steps down if other instances wait, so that each of them leads in turn.';

/** The lead of a name, and its candidates: what docs/cron.md says. */
export const LEADERS: readonly PlantedBug[] = (
  [
    {
      name: 'loss-of-a-lead-not-told',
      file: LEADERSHIP,
      find: "      finish('lost');\n    });",
      replace: '    });',
      explanation: 'The signal of a leader does not abort when it loses the lead.',
      breaks:
        'a `LockLostError`: this instance has lost the leadership, and another instance may lead already;',
    },
    {
      name: 'leads-after-a-loss',
      file: LEADERSHIP,
      find: 'isHeld: () => !signal.aborted && lock.isHeld,',
      replace: 'isHeld: () => !signal.aborted,',
      explanation: 'A leader that was frozen says that it leads until its timers run.',
      breaks: 'On one Redis the first in line is elected.',
    },
    {
      name: 'candidate-for-one-term',
      file: LEADERSHIP,
      find: "if (end === 'stepped-down' || end === 'rotated') await this.#pause(STAND_ASIDE_MS);",
      replace: "if (end === 'stepped-down' || end === 'rotated') return;",
      explanation: 'An instance that has stepped down is never a candidate again.',
      breaks: '| `stepped-down` | `stepDown()` | after 1 s',
    },
    {
      name: 'stands-again-at-once',
      file: LEADERSHIP,
      find: 'const STAND_ASIDE_MS = 1_000;',
      replace: 'const STAND_ASIDE_MS = 0;',
      explanation: 'A leader that has stepped down for others is a candidate again at once.',
      breaks:
        'await leadership.stepDown(); // lets another instance lead; is a candidate again a second later',
    },
    {
      name: 'failed-work-tried-again-at-once',
      file: LEADERSHIP,
      find: "if (end === 'failed') await this.#pause(backOffMs(AFTER_FAILURE, failures++));",
      replace: "if (end === 'failed') await this.#pause(backOffMs(AFTER_FAILURE, 0));",
      explanation: 'A candidate whose work fails again and again is elected again each second.',
      breaks: 'after 1 s, 2 s, … up to 60 s',
    },
    {
      name: 'lead-kept-after-stepping-down',
      file: LEADERSHIP,
      find: '    await scope.finish().catch(() => undefined);\n',
      replace:
        "    if (ending.reason !== 'stepped-down') await scope.finish().catch(() => undefined);\n",
      explanation: 'A leader that steps down keeps its lock.',
      breaks: END,
    },
    {
      name: 'work-not-waited-for',
      file: LEADERSHIP,
      find: ', this.#settled(work, term)]);',
      replace: ']);\n    void this.#settled(work, term);',
      explanation: 'The lead is free before the work of the leader that steps down has ended.',
      breaks: END,
    },
    {
      name: 'end-of-a-term-not-told',
      file: LEADERSHIP,
      find: '      await onLost?.(ended);\n',
      replace: "      if (ended.reason === 'lost') await onLost?.(ended);\n",
      explanation: '`onLost` is called for a lead that was lost, and for no other end.',
      breaks: TOLD,
    },
    {
      name: 'failed-work-leads-on',
      file: LEADERSHIP,
      find: "      finish('failed', error);\n",
      replace: '',
      explanation: 'A leader whose work has failed keeps the lead.',
      breaks: '| `failed` | the work threw an error, which is logged',
    },
    {
      name: 'rotation-without-a-look',
      file: LEADERSHIP,
      find: "if (isWanted) finish('rotated');",
      replace: "finish('rotated');\n      if (isWanted) return;",
      explanation: 'A leader steps down after `rotateEvery` although no instance waits.',
      breaks: ROTATES,
    },
    {
      name: 'rotation-once-only',
      file: LEADERSHIP,
      find: '      else next();\n',
      replace: '',
      explanation: 'A leader looks once whether others wait, and leads indefinitely if none does.',
      breaks: ROTATES,
    },
    {
      name: 'shutdown-keeps-the-lead',
      file: LEADERSHIP,
      find: '    for (const each of this.#all) each.close();\n',
      replace: '',
      explanation: 'A shutdown does not make its leaders step down.',
      breaks:
        '- **If a leader stops**, it releases the leadership, and the next instance is elected at once.',
    },
    {
      name: 'end-of-a-lease-not-awaited',
      file: 'lib/queue/line-sleep.ts',
      find: 'Math.min(ms, LOOK_AGAIN_MS, ttlMs / 3)',
      replace: 'Math.min(Math.max(ms, LOOK_AGAIN_MS), LOOK_AGAIN_MS)',
      explanation: 'Who waits for a holder that died looks again after 5 s.',
      breaks: 'another instance is elected when the lease is over, at most `ttl` + 150 ms later.',
    },
  ] as const
).map((bug) => ({ ...bug, profile: 'lead', page: 'cron.md' }));
