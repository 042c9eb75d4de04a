import { isDeepStrictEqual } from 'node:util';
import type { ComparedServer } from './compared-server.js';
import { describeStep, type Step } from './steps.js';

/** How often a sequence is played again to find a shorter one. */
const MOST_REPLAYS = 300;

export interface Servers {
  readonly model: ComparedServer;
  readonly real: ComparedServer;
}

/** Where two servers differed. */
export interface Difference {
  /** Those up to the one that showed it. */
  readonly steps: readonly Step[];
  readonly model: unknown;
  readonly real: unknown;
}

/** The first difference, if there is any. */
export async function firstDifference(
  { model, real }: Servers,
  steps: readonly Step[],
): Promise<Difference | undefined> {
  const [ofModel, ofReal] = await Promise.all([model.play(steps), real.play(steps)]);
  for (const [index, outcome] of ofModel.entries()) {
    if (isDeepStrictEqual(outcome, ofReal[index])) continue;
    return { steps: steps.slice(0, index + 1), model: outcome, real: ofReal[index] };
  }
  const [toModel, toReal] = await Promise.all([model.messages(), real.messages()]);
  return isDeepStrictEqual(toModel, toReal) ? undefined : { steps, model: toModel, real: toReal };
}

/** The same with as few steps as can be found by leaving some out. */
export async function shrunk(servers: Servers, difference: Difference): Promise<Difference> {
  let best = difference;
  let replays = 0;
  for (let size = Math.ceil(best.steps.length / 2); size > 0; size = Math.floor(size / 2)) {
    for (
      let start = best.steps.length - size;
      start >= 0 && replays < MOST_REPLAYS;
      start -= size
    ) {
      const kept = best.steps.filter((_, index) => index < start || index >= start + size);
      replays += 1;
      best = (await firstDifference(servers, kept)) ?? best;
      start = Math.min(start, best.steps.length);
    }
  }
  return best;
}

export function describeDifference({ steps, model, real }: Difference): string {
  const [ofModel, ofReal] = [model, real].map((each) => JSON.stringify(each, null, 1));
  return [
    ...[`After ${steps.length} steps the model and Redis differ:`, ...steps.map(describeStep)],
    ...[`model: ${ofModel ?? ''}`, `Redis: ${ofReal ?? ''}`],
  ].join('\n');
}
