import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import {
  changedText,
  changesOf,
  sampleOf,
  type LuaChange,
} from '../../../scripts/mutation/lua-changes.mjs';

/** What a text is changed to. */
const changed = (text: string): string[] =>
  changesOf(text).map((change) => changedText(text, change));

/** The changes that leave the statement where it is. */
const changedValues = (text: string): string[] => changed(text).filter((each) => each !== '');

describe('the changes of a Lua file', () => {
  it.each([
    ['<', ['<=', '>=']],
    ['<=', ['<', '>']],
    ['>', ['>=', '<=']],
    ['>=', ['>', '<']],
    ['==', ['~=']],
    ['~=', ['==']],
    ['+', ['-']],
    ['-', ['+']],
    ['*', ['/']],
    ['/', ['*']],
    ['%', ['*']],
  ])('replace the operator %s', (operator, others) => {
    const withOperator = (each: string): string => `return (a) ${each} b`;
    expect(changedValues(withOperator(operator))).toEqual(others.map(withOperator));
  });

  it('exchange "and" and "or", and keep what belongs together', () => {
    expect(changedValues('return a and b or c')).toEqual([
      'return (a or b) or c',
      'return ((a and b) and c)',
    ]);
    expect(changedValues('return (a or b) and c')).toEqual([
      'return (((a or b)) or c)',
      'return ((a and b)) and c',
    ]);
  });

  it('take away "not" and the sign of a number', () => {
    expect(changedValues('return not a')).toEqual(['return a']);
    expect(changedValues('return -a, #b')).toEqual(['return a, #b']);
  });

  it('decide conditions', () => {
    expect(changedValues('if a then f = g elseif b then h = i end')).toEqual([
      'if true then f = g elseif b then h = i end',
      'if false then f = g elseif b then h = i end',
      'if a then  elseif b then h = i end',
      'if a then f = g elseif true then h = i end',
      'if a then f = g elseif false then h = i end',
      'if a then f = g elseif b then  end',
    ]);
    expect(changedValues('while true do end')).toEqual(['while false do end']);
  });

  it('replace constants: small numbers by their neighbours, large ones by the double and the half', () => {
    expect(changedValues('return 0, 12')).toEqual([
      'return 1, 12',
      'return -1, 12',
      'return 0, 13',
      'return 0, 11',
    ]);
    expect(changedValues('return 1001')).toEqual(['return 2002', 'return 500']);
    expect(changedValues("return true, 'text', ''")).toEqual([
      "return false, 'text', ''",
      "return true, '', ''",
      "return true, 'text', 'other'",
    ]);
  });

  it('drop statements, and what stands after "else"', () => {
    expect(changed('local a = b\nf(a)\na = c\nreturn a')).toEqual([
      'local a = b\n\na = c\nreturn a',
      'local a = b\nf(a)\n\nreturn a',
      'local a = b\nf(a)\na = c\n',
    ]);
    expect(changed('while a do break end')).toContain('while a do  end');
    expect(changed('if a then f() else g() end')).toContain('if a then f()  end');
  });

  it('drop options of commands, and keep the names of commands', () => {
    expect(changedValues("return redis.call('SET', key, value, 'NX', 'PX', ms)")).toEqual([
      "return redis.call('SET', key, value, 'PX', ms)",
      "return redis.call('SET', key, value, 'NX', ms)",
      "return redis.call('SET', key, value, 'NX', 'EX', ms)",
    ]);
  });

  it('exchange the largest and the smallest, and the ways to round', () => {
    expect(changedValues('return math.max(a, b), math.ceil(c)')).toEqual([
      'return math.min(a, b), math.ceil(c)',
      'return math.max(a, b), math.floor(c)',
    ]);
  });

  it('have the line and the text of what they replace', () => {
    expect(changesOf('local a\n  = b < c')).toContainEqual({
      ...{ line: 2, start: 14, end: 15, original: '<', replacement: '<=' },
    });
  });

  it('leave out comments', () => {
    expect(changesOf('--[[ if a < 1 then ]]\n-- b = 2\n')).toEqual([]);
  });
});

describe('a sample of changes', () => {
  const file = new URL('../../../lib/store/redis/lua/take.lua', import.meta.url);
  const text = readFileSync(file, 'utf8');

  it('is always the same, in the order of the text', () => {
    const sample = sampleOf('take.lua', text, 20);
    expect(sample).toHaveLength(20);
    expect(sampleOf('take.lua', text, 20)).toEqual(sample);
    expect(sample.map(({ start }) => start)).toEqual(
      sample.map(({ start }) => start).sort((a, b) => a - b),
    );
  });

  it('is the same where other lines have changed', () => {
    const named = ({ original, replacement }: LuaChange): string => `${original} ${replacement}`;
    expect(sampleOf('take.lua', `local another = text\n${text}`, 20).map(named)).toEqual(
      sampleOf('take.lua', text, 20).map(named),
    );
  });

  it('is part of a larger sample', () => {
    const larger = sampleOf('take.lua', text, 30);
    expect(larger).toEqual(expect.arrayContaining(sampleOf('take.lua', text, 20)));
  });

  it('has all changes if there are no more', () => {
    expect(sampleOf('take.lua', text, Infinity)).toEqual(changesOf(text));
  });
});
