import { describe, expect, it } from '@jest/globals';
import { Section } from '../../lib/sections/section.js';
import { stubLock, type StubFacts } from './stub-lock.js';

const [orders, jobs] = [{}, {}];

describe('a section', () => {
  it('keeps others of its service from its keys', () => {
    const section = new Section(orders, stubLock({ keys: ['a', 'b'] }), undefined);
    expect(section.holds(orders, 'a')).toBe(true);
    expect(section.holds(orders, 'b')).toBe(true);
  });

  it('keeps nobody from other keys', () => {
    const section = new Section(orders, stubLock({ keys: ['a', 'b'] }), undefined);
    expect(section.holds(orders, 'c')).toBe(false);
  });

  it('keeps nobody of another service from anything', () => {
    const section = new Section(orders, stubLock({ keys: ['a'] }), undefined);
    expect(section.holds(jobs, 'a')).toBe(false);
  });

  it('keeps nobody from its keys once it has ended, though its lock is still held', async () => {
    const section = new Section(orders, stubLock({ keys: ['a'] }), undefined);
    await section.close();
    expect(section.lock.isHeld).toBe(true);
    expect(section.holds(orders, 'a')).toBe(false);
  });

  it('keeps nobody from its keys once its lock is lost, or given back', () => {
    const ends: readonly Partial<StubFacts>[] = [{ isHeld: false }, { isReleased: true }];
    for (const end of ends) {
      const facts: StubFacts = { keys: ['a'] };
      const section = new Section(orders, stubLock(facts), undefined);
      Object.assign(facts, end);
      expect(section.holds(orders, 'a')).toBe(false);
    }
  });
});

describe('the sections that one stands in', () => {
  const outer = new Section(orders, stubLock({ keys: ['a'] }), undefined);
  const middle = new Section(jobs, stubLock({ keys: ['b'] }), outer);
  const inner = new Section(orders, stubLock({ keys: ['c'] }), middle);

  it('are those of all services, from the innermost outwards', () => {
    expect(inner.enclosing().map(({ lock }) => lock.keys)).toEqual([['c'], ['b'], ['a']]);
  });

  it('are those of one service where the caller asks for that', () => {
    expect(inner.enclosing(orders).map(({ lock }) => lock.keys)).toEqual([['c'], ['a']]);
    expect(inner.enclosing(jobs).map(({ lock }) => lock.keys)).toEqual([['b']]);
    expect(inner.enclosing({})).toEqual([]);
  });
});
