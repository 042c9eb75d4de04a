/** Plays a small world in every order in which its first messages can arrive. */
import { check } from '../checker/check.js';
import { play } from '../play.js';
import { timelineOf } from '../timeline.js';
import { Interleavings, SeenBefore } from './interleavings.js';
import type { Scope } from './scopes.js';

/** How far an exploration is. */
export interface Explored {
  readonly isComplete: boolean;
  /** Whether worlds had more messages than those whose order was explored. */
  readonly isDeeper: boolean;
  /** Orders that were played to their end. */
  readonly worlds: number;
  /** That were left because the rest had been played. */
  readonly seenBefore: number;
  /** What broke a promise, for a human. */
  readonly report?: string;
}

export class Exploration {
  readonly #scope: Scope;
  readonly #order: Interleavings;
  #worlds = 0;
  #seenBefore = 0;

  constructor(scope: Scope, depth: number) {
    this.#scope = scope;
    this.#order = new Interleavings(depth);
  }

  /** Until every order was played, one of them breaks a promise, or so much time is over. To be called within `ownTurn`. */
  goOn(forMs: number): Explored {
    const until = performance.now() + forMs;
    for (;;) {
      const report = this.#playOne();
      const isComplete = report === undefined && !this.#order.advance();
      if (isComplete || report !== undefined || performance.now() > until)
        return {
          isComplete,
          isDeeper: this.#order.isDeeper,
          worlds: this.#worlds,
          seenBefore: this.#seenBefore,
          ...(report !== undefined && { report }),
        };
    }
  }

  #playOne(): string | undefined {
    try {
      const played = play(this.#scope.scenario, this.#order);
      this.#worlds += 1;
      const violations = check(played);
      if (violations.length === 0) return undefined;
      const head = `explore: ${this.#scope.name}, world ${String(this.#worlds)}`;
      return [head, ...violations.map((text) => `  ${text}`), timelineOf(played)].join('\n');
    } catch (error) {
      if (!(error instanceof SeenBefore)) throw error;
      this.#seenBefore += 1;
      return undefined;
    }
  }
}
