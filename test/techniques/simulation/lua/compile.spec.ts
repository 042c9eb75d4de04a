import { describe, expect, it } from '@jest/globals';
import { compileLua, type Host } from './compile.js';
import { decimal, exact, parseLuaNumber, rounded } from './numbers.js';
import { LuaError, LuaTable, UnsupportedLua, type LuaValue } from './values.js';

const NO_HOST: Host = {
  call: () => {
    throw new Error('there is no server');
  },
  pcall: () => undefined,
};

/** What a script returns, as an array; tables of it as arrays too. */
function run(text: string, args: LuaValue[] = [], host = NO_HOST): unknown {
  const values = compileLua(text)(host, new LuaTable(), new LuaTable(args));
  const shown = (value: LuaValue): unknown =>
    value instanceof LuaTable ? value.items.map(shown) : value;
  return values instanceof Array ? values.map(shown) : [shown(values)];
}

const raised = (text: string): unknown => {
  try {
    return run(text);
  } catch (error) {
    if (error instanceof LuaError) return error.value;
    throw error;
  }
};

describe('A compiled script', () => {
  it('has numbers that are doubles, written with 14 digits', () => {
    expect(run(`return 2^53, 2^53 .. '', 1e15 .. '', 1e14 .. '', 0.1 .. '', 1/3 .. ''`)).toEqual([
      ...[2 ** 53, '9.007199254741e+15', '1e+15', '1e+14', '0.1', '0.33333333333333'],
    ]);
    expect(run(`return 7 % 3, -7 % 3, 7 % -3, 7 / 2, -2 ^ 2`)).toEqual([1, 2, -2, 3.5, -4]);
    expect(run(`return math.huge .. '', -math.huge .. ''`)).toEqual(['inf', '-inf']);
  });

  it('makes numbers of texts where it reckons, and nowhere else', () => {
    expect(run(`return '10' + 5, ' 0x10 ' * 1, 10 == '10', '1e2' - 0`)).toEqual([
      15,
      16,
      false,
      100,
    ]);
    expect(raised(`return {} + 1`)).toBe('attempt to perform arithmetic on a table value');
    expect(raised(`return 1 < '2'`)).toBe('attempt to compare number with string');
  });

  it('takes nil and false for false, and all else for true', () => {
    expect(
      run(`local a = 0 and 'zero' local b = '' or 'x' return a, b, nil or false, not 0`),
    ).toEqual(['zero', '', false, false]);
    expect(run(`return false and 1, nil and 1, 1 and nil, false == nil`)).toEqual([
      ...[false, undefined, undefined, false],
    ]);
  });

  it('evaluates from left to right, and what follows "and" and "or" only if it counts', () => {
    const text = `local log = {}
local function note(x) log[#log + 1] = x return x end
local _ = note(1) > note(2) or note(3) < note(4) and note(5)
local _ = note(false) and note(6) or note(7)
return log`;
    expect(run(text)).toEqual([[1, 2, 3, 4, 5, false, 7]]);
  });

  it('gives all values of a call only where it is the last of a list', () => {
    const text = `local function two() return 1, 2 end
local function none() end
local a, b, c = two(), two()
local function count(x, y, z) return z and 3 or y and 2 or x and 1 or 0 end
return { two(), two() }, a, b, c, count(two(), two()), count(none()), select(2, two())`;
    expect(run(text)).toEqual([[1, 1, 2], 1, 1, 2, 3, 0, 2]);
  });

  it('keeps the variables of each round of a loop apart', () => {
    const text = `local made, x = {}, 'outside'
for i = 1, 3 do local x = i * 10 made[i] = function_of end
return x`;
    expect(() => run(text)).toThrow('the global "function_of" as a value');
    const kept = `local get = {}
for i = 1, 3 do
  local seen
  local function read() seen = (seen or 0) + i return seen end
  get[i] = read
end
local first, second = get[1], get[2]
return first(), first(), second()`;
    expect(run(kept)).toEqual([1, 2, 2]);
    expect(
      run(`local n = 0 for i = 5, 1 do n = i end for i = 1, 9, 4 do n = n + i end return n`),
    ).toEqual([15]);
  });

  it('knows the length of a table without holes, and of no other', () => {
    expect(run(`local t = {} t[2] = 'b' t[1] = 'a' return #t, #'\\195\\169', #{ nil }`)).toEqual([
      2, 2, 0,
    ]);
    expect(run(`local t = { 1, 2, 3 } t[3] = nil t[2] = nil return #t`)).toEqual([1]);
    expect(() => run(`return #{ 1, nil, 3 }`)).toThrow(UnsupportedLua);
    expect(() => run(`local t = { 1 } t[5] = 5 return #t`)).toThrow('a table with holes');
  });

  it('stops at the first nil of ipairs', () => {
    expect(
      run(`local n = 0 for i, v in ipairs({ 5, 6, nil, 7 }) do n = n + v end return n`),
    ).toEqual([11]);
    expect(run(`local n = 0 for i in ipairs({ 5, 6 }) do n = n + i end return n`)).toEqual([3]);
  });

  it('protects from what Lua raises, and from nothing that the compiler does not know', () => {
    const text = `local function wrong(x) return x.y.z end
local ok, message = pcall(wrong, { y = nil })
return ok, message, pcall(wrong, { y = { z = 1 } })`;
    expect(run(text)).toEqual([false, 'attempt to index a nil value', true, 1]);
    expect(() =>
      run(`local function length() return #{ 1, nil, 3 } end return pcall(length)`),
    ).toThrow(UnsupportedLua);
  });

  it('finds patterns as Lua does, byte by byte', () => {
    expect(run(`return string.match('key:12 x', '^(%w+):(%d+)')`)).toEqual(['key', '12']);
    expect(run(`return string.match('a.b', '%.(.*)$'), string.match('ab', '^b')`)).toEqual([
      'b',
      undefined,
    ]);
    expect(run(`return string.match('<<a>>', '<(.-)>'), string.match('a-b]', '[%]-]+')`)).toEqual([
      '<a',
      '-',
    ]);
    expect(
      run(`return string.match('\\195\\169 x', '^%S+'), string.match('a\\160b', '%s')`),
    ).toEqual([...['\xc3\xa9', undefined]]);
    expect(run(`return string.find('a.b.c', '.', 3, true)`)).toEqual([4, 4]);
    expect(run(`return string.find('abc', 'b()', 1)`.replace('()', ''))).toEqual([2, 2]);
    expect(
      run(
        `local t = {} for k, v in string.gmatch('a=1,b=2', '(%w)=(%w)') do t[#t + 1] = k .. v end return t`,
      ),
    ).toEqual([['a1', 'b2']]);
    expect(() => run(`return string.match('x', '%bxy')`)).toThrow('the pattern "%bxy": %b');
  });

  it('cuts texts with indexes from both ends', () => {
    expect(
      run(
        `return string.sub('hello', 2, 3), string.sub('hello', -3), string.sub('hello', 0), string.sub('hello', 4, 99), string.sub('hello', 4, 2)`,
      ),
    ).toEqual(['el', 'llo', 'hello', 'lo', '']);
  });

  it('hands arguments to the server as they are, with the line of the call', () => {
    const calls: unknown[] = [];
    const host: Host = {
      ...NO_HOST,
      call: (args, line) => {
        calls.push([line, ...args]);
        return undefined;
      },
    };
    run(`redis.call('GET', ARGV[1])\nredis.call('SET',\n'k', 1.5)`, ['a'], host);
    expect(calls).toEqual([
      [1, 'GET', 'a'],
      [2, 'SET', 'k', 1.5],
    ]);
  });
});

describe('The compiler', () => {
  it.each([
    ['for k in pairs({}) do end', 'the global "pairs", in line 1'],
    ['local x = 1\nx = math.random()', 'the global "math.random", in line 2'],
    ['y = 1', 'assigning to the global "y"'],
    ['return y', 'the global "y" as a value'],
    ['local f = redis.call', '"redis.call" as a value'],
    ['repeat local x until true', 'RepeatStatement'],
    ['local function f(...) return ... end', '"..."'],
    [`local s = 'x' return s:len()`, 'a method'],
    ['local f = function() end', 'FunctionDeclaration'],
    [`return string.format('%5.2f', 1)`, 'the format "%5.2f"'],
    [`return tonumber('10', 2)`, '"tonumber" with these arguments'],
    ['for i = 3, 1, -1 do end', 'a step of "for" that is no number above 0'],
    ['local function f() end return (f())', 'parentheses around a call'],
    ['local function f() end f((f()))', 'parentheses around a call'],
    ['local function f() end local t = { (f()) }', 'parentheses around a call'],
    ['local function f() end local a, b = (f())', 'parentheses around a call'],
    ['local function f() end f = 1', 'assigning to the function "f"'],
  ])('refuses what it does not know: %s', (text, message) => {
    expect(() => compileLua(text)).toThrow(UnsupportedLua);
    expect(() => compileLua(text)).toThrow(message);
  });

  it('compiles a text once', () => {
    expect(compileLua('return 1')).toBe(compileLua('return 1'));
  });
});

describe('Numbers', () => {
  it('are rounded as C rounds: ties to the even digit', () => {
    expect([0.5, 1.5, 2.5, -0.5, -2.5].map(rounded)).toEqual(['0', '2', '2', '-0', '-2']);
    expect(decimal(10000000000000.5)).toBe('10000000000000');
    expect(decimal(10000000000001.5)).toBe('10000000000002');
  });

  it('are exact with 17 digits', () => {
    expect([0.1, 2 ** 56, 1e17, 1e23, 1.5e-7, Infinity].map(exact)).toEqual([
      ...['0.10000000000000001', '72057594037927936', '1e+17', '9.9999999999999992e+22'],
      ...['1.4999999999999999e-07', 'inf'],
    ]);
    expect(rounded(2 ** 70)).toBe('1180591620717411303424');
  });

  it('are read as C reads them', () => {
    const texts = [
      '007',
      '1700000000000001',
      '9007199254740993',
      ' 5 ',
      '.5',
      '5.',
      '1e3',
      '-0x1F',
    ];
    expect(texts.map(parseLuaNumber)).toEqual([
      ...[7, 1700000000000001, 9007199254740992, 5, 0.5, 5, 1000, -31],
    ]);
    expect(['', ' ', '1 2', '--1', '1e', '0x', '1_0', 'é'].map(parseLuaNumber)).toEqual(
      Array(8).fill(undefined),
    );
  });
});
