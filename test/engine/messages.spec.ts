import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseMessage, type Message } from '../../lib/engine/messages.js';

const CALL = { method: 'Orders.pay', template: 'order:<id>', place: 'run (app.ts:1:1)' };

const MESSAGES: readonly Message[] = [
  { type: 'ask', id: '1', to: 'a', reply: '["plain x"]', question: { about: 'hot' } },
  { type: 'ask', id: '1', to: 'a', reply: '[]', question: { about: 'key', key: 'order:42' } },
  { type: 'answer', id: '1', from: 'b', answer: {} },
  {
    type: 'answer',
    id: '1',
    from: 'b',
    answer: {
      holds: [{ ...CALL, leaseId: 'abcdefgh', heldMs: 3.5, fencingToken: 7 }],
      waits: [{ waitedMs: 2, keys: ['order:42'] }],
      hot: [{ key: 'order:42', waitedMs: 1, waits: 1, refusals: 0 }],
    },
  },
  {
    ...{ type: 'ask', id: '1', to: 'a', reply: '[]' },
    question: {
      about: 'end',
      leases: [{ key: 'order:42', digest: '0a', fencingToken: 7 }],
      intervention: { by: 'ada', reason: 'stuck' },
    },
  },
  { type: 'answer', id: '1', from: 'b', answer: { endings: ['ended', 'passed-on', 'unknown'] } },
];

/** Every object in it, with one property less or another value in its place. */
function* spoilt(value: unknown, by: unknown): Generator {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, part] of Object.entries(value)) {
    const put = (other: unknown): unknown =>
      Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other };
    if (typeof by !== typeof part || by === null) yield put(by);
    for (const inner of spoilt(part, by)) yield put(inner);
  }
}

describe('messages from one service to another', () => {
  it.each(MESSAGES)('are read as they were written: %j', (message) => {
    expect(parseMessage(JSON.stringify(message))).toEqual(message);
  });

  it.each(MESSAGES)('of which a part is of another kind are none: %j', (message) => {
    for (const by of [null, 5, 'text', { about: 'key' }])
      for (const wrong of spoilt(message, by)) {
        const text = JSON.stringify(wrong);
        expect([text, parseMessage(text)]).toEqual([text, undefined]);
      }
  });

  it('are none when they are longer than any that a service sends', () => {
    const ofLength = (length: number): string => {
      const message = { type: 'answer', id: '1', from: '', answer: {} };
      const from = 'b'.repeat(length - JSON.stringify(message).length);
      return JSON.stringify({ ...message, from });
    };
    expect(parseMessage(ofLength(1_000_000))).toMatchObject({ type: 'answer' });
    expect(parseMessage(ofLength(1_000_001))).toBeUndefined();
  });

  it('are none when a stranger sends anything else', () => {
    for (const text of ['', '{', 'null', '[]', '"ask"', '5', '{"type":"stop"}'])
      expect(parseMessage(text)).toBeUndefined();
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const text = JSON.stringify(value) as string | undefined;
        expect(parseMessage(text ?? '')).toBeUndefined();
      }),
    );
  });
});
