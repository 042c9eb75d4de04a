import { RecentMap } from '../collections/recent-map.js';
import { LockNotAcquiredError } from '../errors.js';

/** A section counts half as much as one that ended this much later. */
const HALF_LIFE_MS = 60_000;

/** How many sections of a template are kept. */
const MOST_SECTIONS = 64;

/** Templates are written in the code. The limit is for names that an application makes as it runs. */
const MOST_TEMPLATES = 1_000;

interface Section {
  readonly tookMs: number;
  readonly endedAtMs: number;
}

/** The oldest section is replaced. */
interface Sections {
  readonly last: Section[];
  next: number;
  /** Computed when it is asked for; a new section removes it. */
  estimateMs?: number | undefined;
}

/** How long the sections of each key template kept their keys taken lately, in this process. */
export class SectionTimes {
  readonly #byTemplate = new RecentMap<string, Sections>(MOST_TEMPLATES);
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  add(template: string | undefined, tookMs: number): void {
    if (template === undefined) return;
    const sections: Sections = this.#byTemplate.get(template) ?? { last: [], next: 0 };
    this.#byTemplate.set(template, sections);
    sections.last[sections.next] = { tookMs, endedAtMs: this.#nowMs() };
    sections.next = (sections.next + 1) % MOST_SECTIONS;
    sections.estimateMs = undefined;
  }

  /** The 95th percentile, in ms; `undefined` if no section of the template has ended yet. */
  estimateMs(template: string | undefined): number | undefined {
    const sections = template === undefined ? undefined : this.#byTemplate.get(template);
    return sections && (sections.estimateMs ??= percentileOf(sections.last));
  }

  /**
   * Makes the estimate the hint of a refusal, if it is shorter than what is left of the lease. Does nothing if other
   * software holds the key without a TTL.
   */
  hint(error: unknown, template: string | undefined): void {
    if (!(error instanceof LockNotAcquiredError) || error.retryAfterMs === Infinity) return;
    const estimateMs = this.estimateMs(template);
    if (estimateMs !== undefined) error.hintAtMost(estimateMs);
  }
}

/** The longest time that more than 5 % of the weight reaches. */
function percentileOf(sections: readonly Section[]): number | undefined {
  const latestMs = Math.max(...sections.map(({ endedAtMs }) => endedAtMs));
  const weighted = sections
    .map(({ tookMs, endedAtMs }) => ({
      tookMs,
      weight: 0.5 ** ((latestMs - endedAtMs) / HALF_LIFE_MS),
    }))
    .sort((one, other) => other.tookMs - one.tookMs);
  let leftOut = 0.05 * weighted.reduce((sum, { weight }) => sum + weight, 0);
  return weighted.find(({ weight }) => {
    leftOut -= weight;
    return leftOut < 0;
  })?.tookMs;
}
