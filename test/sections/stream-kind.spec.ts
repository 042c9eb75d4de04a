import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { EMPTY } from 'rxjs';
import { isAsyncIterable, streamKindOf } from '../../lib/sections/stream-kind.js';

async function* steps(): AsyncGenerator<number> {
  yield 1;
}

function* atOnce(): Generator<number> {
  yield 1;
}

const asyncIterable = { [Symbol.asyncIterator]: () => steps() };
const notCallable = { [Symbol.asyncIterator]: 'no function', next: () => undefined };
const withoutSteps = { [Symbol.asyncIterator]: () => steps(), next: 'page' };

describe('a value that goes on working', () => {
  it('is an Observable', () => {
    expect(streamKindOf(EMPTY)).toBe('observable');
  });

  it('is an async generator', () => {
    expect(streamKindOf(steps())).toBe('iterable');
  });

  it.each([
    ['an async iterable that is not its own iterator', asyncIterable],
    ['an async iterable whose "next" is a value', withoutSteps],
    ['a stream of Node', Readable.from([])],
    ['a generator that is not async', atOnce()],
    ['an object that only looks like a generator', notCallable],
    ['an array', [1]],
    ['a function', steps],
    ['a string', 'text'],
    ['null', null],
    ['undefined', undefined],
  ])('is not %s', (_name, value) => {
    expect(streamKindOf(value)).toBeUndefined();
  });
});

describe('an async iterable', () => {
  it.each([
    ['an async generator', steps()],
    ['an object that makes iterators', asyncIterable],
    ['a stream of Node', Readable.from([])],
  ])('is %s', (_name, value) => {
    expect(isAsyncIterable(value)).toBe(true);
  });

  it.each([
    ['a generator that is not async', atOnce()],
    ['an object with another value in the place of the method', notCallable],
    ['an Observable', EMPTY],
    ['null', null],
    ['undefined', undefined],
  ])('is not %s', (_name, value) => {
    expect(isAsyncIterable(value)).toBe(false);
  });
});
