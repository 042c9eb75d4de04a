import { Random } from '../../faults/random.js';
import { BEGINNING_US } from './clock-shim.js';
import type { ModelCommand } from './model.js';
import { randomCommand } from './random-commands.js';
import { RandomScripts } from './random-scripts.js';
import type { ModelServer } from './model-server.js';
import type { Step } from './steps.js';

/** Steps from a seed, chosen while a model plays them: what somebody does depends on the answers. */
export function randomSteps(seed: number, model: ModelServer): readonly Step[] {
  const random = new Random(seed);
  const length = random.pick([20, 60, 60, 150]);
  const scripts = new RandomScripts(random.fork(1));
  const kinds = random.pick(['scripts', 'scripts', 'both', 'commands'] as const);
  const plainShare = { scripts: 0.06, both: 0.3, commands: 1 }[kinds];
  const steps: Step[] = [];
  let atUs = BEGINNING_US + random.between(0, 1_000_000);
  const happen = (step: Step): unknown => {
    steps.push(step);
    return model.happen(step);
  };
  model.begin();
  for (const channel of [...scripts.attempts.channels, 'channel']) {
    if (random.chance(0.7)) happen(listening(channel, 'begins', atUs));
  }
  while (steps.length < length) {
    atUs = later(random, atUs, model.expiries(atUs));
    const run = (command: ModelCommand): unknown => happen({ atUs, command });
    const chosen = random.fraction();
    if (chosen < 0.02) happen({ atUs, memory: random.pick(['free', 'full']) });
    else if (chosen < 0.06) {
      const channel = random.pick([...scripts.attempts.channels, 'channel']);
      happen(listening(channel, random.pick(['begins', 'ends']), atUs));
    } else if (random.chance(plainShare)) run(randomCommand(random, scripts.keys));
    else scripts.step(atUs, run);
  }
  return steps;
}

const listening = (channel: string, listens: 'begins' | 'ends', atUs: number): Step => ({
  ...{ atUs, listens, channel },
  kind: channel.includes('{') ? 'sharded' : 'plain',
});

/** Not at all, a little, much, or to the moment when something expires, or the one after. */
function later(random: Random, atUs: number, expiriesMs: readonly number[]): number {
  const chosen = random.fraction();
  if (chosen < 0.25) return atUs;
  if (chosen < 0.6) return atUs + random.between(1, 3_000);
  if (chosen < 0.75) return atUs + random.between(1, 400_000);
  if (chosen < 0.9 && expiriesMs.length > 0) {
    const instant = random.pick(expiriesMs) * 1_000 + random.pick([-1, 0, 999, 1_000]);
    return Math.max(atUs, Math.min(instant, atUs + 60_000_000));
  }
  return atUs + random.between(1, 8_000_000);
}
