import { exact } from '../../lua/numbers.js';
import type { Keyspace } from '../keyspace.js';
import {
  NO_BOUND,
  NO_FLOAT,
  NO_INTEGER,
  SYNTAX,
  UnknownCommand,
  WRONG_TYPE,
  type RawReply,
} from '../replies.js';
import { SortedSet, type Scored } from '../sorted-set.js';
import { grows, reads, writes, type Command } from './command.js';
import { boundOf, integerOf, scoreOf } from './parse.js';

export const SORTED_SET_COMMANDS: Readonly<Record<string, Command>> = {
  ZADD: grows(-4, ({ keyspace }, argv) => add(keyspace, argv)),
  ZREM: writes(-3, ({ keyspace }, [, key = '', ...members]) =>
    using(keyspace, key, (set) => (set ? remove(keyspace, key, set, members) : 0)),
  ),
  ZCARD: reads(2, ({ keyspace }, [, key = '']) => using(keyspace, key, (set) => set?.size ?? 0)),
  ZSCORE: reads(3, ({ keyspace }, [, key = '', member = '']) =>
    using(keyspace, key, (set) => {
      const score = set?.score(member);
      return score === undefined ? null : exact(score);
    }),
  ),
  ZCOUNT: reads(4, ({ keyspace }, [, key = '', from = '', to = '']) =>
    within(keyspace, key, [from, to], (_, [start, end]) => Math.max(0, end - start)),
  ),
  ZRANGE: reads(-4, ({ keyspace }, argv) => range(keyspace, argv, 'upwards')),
  ZREVRANGE: reads(-4, ({ keyspace }, argv) => range(keyspace, argv, 'downwards')),
  ZRANGEBYSCORE: reads(-4, ({ keyspace }, argv) => rangeByScore(keyspace, argv)),
  ZREMRANGEBYSCORE: writes(4, ({ keyspace }, [, key = '', from = '', to = '']) =>
    within(keyspace, key, [from, to], (set, [start, end]) => {
      const members = set?.slice(start, Math.max(start, end)).map(({ member }) => member) ?? [];
      return set ? remove(keyspace, key, set, members) : 0;
    }),
  ),
};

function using(
  keyspace: Keyspace,
  key: string,
  work: (set: SortedSet | undefined) => RawReply,
): RawReply {
  const value = keyspace.get(key)?.value;
  return value === undefined || value instanceof SortedSet ? work(value) : WRONG_TYPE;
}

/** Indexes of a range of scores: the first, and the one behind the last. */
function within(
  keyspace: Keyspace,
  key: string,
  [from, to]: readonly [string, string],
  work: (set: SortedSet | undefined, indexes: readonly [number, number]) => RawReply,
): RawReply {
  const [low, high] = [boundOf(from), boundOf(to)];
  if (low === undefined || high === undefined) return NO_BOUND;
  return using(keyspace, key, (set) => {
    if (set === undefined) return work(undefined, [0, 0]);
    const end = set.firstFrom(high.score, high.itself === 'with' ? 'without' : 'with');
    return work(set, [set.firstFrom(low.score, low.itself), end]);
  });
}

function add(keyspace: Keyspace, argv: readonly string[]): RawReply {
  const [, key = '', option = ''] = argv;
  const condition = option.toUpperCase();
  if (/^(GT|LT|CH|INCR)$/.test(condition)) throw new UnknownCommand(`ZADD … ${condition}`);
  const isConditional = condition === 'NX' || condition === 'XX';
  const pairs = argv.slice(isConditional ? 3 : 2);
  if (pairs.length === 0 || pairs.length % 2 !== 0) return SYNTAX;
  const scores = pairs.filter((_, index) => index % 2 === 0).map(scoreOf);
  if (scores.includes(undefined)) return NO_FLOAT;
  return using(keyspace, key, (found) => {
    if (found === undefined && condition === 'XX') return 0;
    const set = found ?? new SortedSet();
    if (found === undefined) keyspace.set(key, set);
    const before = set.size;
    scores.forEach((score, index) => {
      const member = pairs[2 * index + 1] as string;
      const old = set.score(member);
      if (old === score || (isConditional && (condition === 'NX') === (old !== undefined))) return;
      set.set(member, score as number);
      keyspace.changed(key);
    });
    return set.size - before;
  });
}

function remove(
  keyspace: Keyspace,
  key: string,
  set: SortedSet,
  members: readonly string[],
): number {
  let removed = 0;
  for (const member of members) if (set.delete(member)) removed += 1;
  if (removed > 0) keyspace.changed(key);
  if (set.size === 0) keyspace.delete(key);
  return removed;
}

function range(
  keyspace: Keyspace,
  [name = '', key = '', from = '', to = '', ...rest]: readonly string[],
  direction: 'upwards' | 'downwards',
): RawReply {
  const options = optionsOf(name, rest);
  if (options === undefined || options.limit !== undefined) return SYNTAX;
  const [start, stop] = [integerOf(from), integerOf(to)];
  if (start === undefined || stop === undefined) return NO_INTEGER;
  return using(keyspace, key, (set) => {
    const size = set?.size ?? 0;
    const first = Math.max(0, start < 0 ? size + start : start);
    const last = Math.min(size - 1, stop < 0 ? size + stop : stop);
    if (set === undefined || first > last) return [];
    if (direction === 'upwards') return listed(set.slice(first, last + 1), options);
    return listed([...set.slice(size - 1 - last, size - first)].reverse(), options);
  });
}

function rangeByScore(
  keyspace: Keyspace,
  [name = '', key = '', from = '', to = '', ...rest]: readonly string[],
): RawReply {
  const options = optionsOf(name, rest);
  if (options === undefined) return SYNTAX;
  const [offset, count] = options.limit?.map(integerOf) ?? [0, -1];
  if (offset === undefined || count === undefined) return NO_INTEGER;
  return within(keyspace, key, [from, to], (set, [start, end]) => {
    if (set === undefined || offset < 0) return [];
    const first = start + offset;
    const last = count < 0 ? end : Math.min(end, first + count);
    return listed(set.slice(first, Math.max(first, last)), options);
  });
}

interface RangeOptions {
  readonly withScores: boolean;
  readonly limit: readonly [offset: string, count: string] | undefined;
}

const NO_OPTIONS: RangeOptions = { withScores: false, limit: undefined };

function optionsOf(name: string, options: readonly string[]): RangeOptions | undefined {
  if (options.length === 0) return NO_OPTIONS;
  let [withScores, limit]: [boolean, RangeOptions['limit']] = [false, undefined];
  for (let index = 0; index < options.length; index += 1) {
    const option = options[index]?.toUpperCase() ?? '';
    const [offset, count] = options.slice(index + 1);
    if (/^(?:BYSCORE|BYLEX|REV)$/.test(option)) throw new UnknownCommand(`${name} … ${option}`);
    if (option === 'WITHSCORES') withScores = true;
    else if (option === 'LIMIT' && offset !== undefined && count !== undefined) {
      limit = [offset, count];
      index += 2;
    } else return undefined;
  }
  return { withScores, limit };
}

function listed(members: readonly Scored[], { withScores }: RangeOptions): RawReply {
  if (!withScores) return members.map(({ member }) => member);
  return members.flatMap(({ member, score }) => [member, exact(score)]);
}
