import { describe, expect, it } from '@jest/globals';
import type { Delivery } from '../world/deliveries.js';
import { ownTurn } from '../world/settle.js';
import { Exploration } from './explore.js';
import { Interleavings, SeenBefore } from './interleavings.js';
import { SCOPES } from './scopes.js';

const LIMIT_MS = 240_000;
const TURN_MS = 1_000;

/** Who gets what in which order, for one message in each pipe, whatever depends on each other. */
function ordersOf(
  messages: readonly { readonly pipe: number; readonly to: string }[],
  depth: number,
): string[] {
  const orders: string[] = [];
  const interleavings = new Interleavings(depth);
  do {
    const left: Delivery[] = messages.map((message) => ({ ...message, arrive: () => undefined }));
    const order: number[] = [];
    try {
      while (left.length > 0) {
        const next = interleavings.next(left);
        order.push(next.pipe);
        left.splice(left.indexOf(next), 1);
      }
      orders.push(order.join(' '));
    } catch (error) {
      if (!(error instanceof SeenBefore)) throw error;
    }
  } while (interleavings.advance());
  return orders.sort();
}

describe('the orders in which messages arrive', () => {
  it('are all there are, at one end', () => {
    const to = 's0';
    const messages = [1, 2, 3].map((pipe) => ({ pipe, to }));
    expect(ordersOf(messages, 3)).toEqual(['1 2 3', '1 3 2', '2 1 3', '2 3 1', '3 1 2', '3 2 1']);
  });

  it('are one, where each has an end of its own', () => {
    const messages = [1, 2, 3].map((pipe) => ({ pipe, to: `p${pipe}` }));
    expect(ordersOf(messages, 3)).toEqual(['1 2 3']);
  });

  it('differ in what arrives at one end only', () => {
    const messages = [
      { pipe: 1, to: 's0' },
      { pipe: 2, to: 'p0' },
      { pipe: 3, to: 's0' },
    ];
    expect(ordersOf(messages, 3)).toEqual(['1 2 3', '2 3 1']);
  });

  it('are tried up to a depth', () => {
    const messages = [1, 2, 3].map((pipe) => ({ pipe, to: 's0' }));
    expect(ordersOf(messages, 1)).toEqual(['1 2 3', '2 1 3', '3 1 2']);
  });
});

describe('worlds that are explored', () => {
  it.each(SCOPES)(
    'keep every promise in every order of the first $depth messages: $name',
    async (scope) => {
      const exploration = new Exploration(scope, scope.depth);
      let explored = await ownTurn(() => exploration.goOn(TURN_MS));
      while (!explored.isComplete && explored.report === undefined)
        explored = await ownTurn(() => exploration.goOn(TURN_MS));
      expect(explored.report).toBeUndefined();
      expect(explored.worlds).toBeGreaterThan(30);
    },
    LIMIT_MS,
  );
});
