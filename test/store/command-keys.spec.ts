import { describe, expect, it } from '@jest/globals';
import { Command } from 'ioredis';
import { commandKeys } from '../../lib/store/redis/client/command-keys.js';

/** Each with its keys. */
const KNOWN: readonly (readonly [command: string, keys: string])[] = [
  ['get a', 'a'],
  ['set a value px 100', 'a'],
  ['HSET a field value', 'a'],
  ['zadd a 1 member', 'a'],
  ['del a b c', 'a b c'],
  ['mget a b', 'a b'],
  ['sinterstore to a b', 'to a b'],
  ['mset a 1 b 2 c 3', 'a b c'],
  ['msetnx a b', 'a'],
  ['rename a b', 'a b'],
  ['copy a b replace', 'a b'],
  ['smove a b member', 'a b'],
  ['lmove a b left right', 'a b'],
  ['zrangestore to from 0 -1', 'to from'],
  ['geosearchstore to from fromlonlat 1 2 byradius 3 m', 'to from'],
  ['blpop a b 5', 'a b'],
  ['bzpopmax a 5', 'a'],
  ['bitop and to a b', 'to a b'],
  ['object encoding a', 'a'],
  ['xgroup create a group $ mkstream', 'a'],
  ['xinfo consumers a group', 'a'],
  ['memory usage a samples 5', 'a'],
  ['zunion 2 a b withscores', 'a b'],
  ['sintercard 2 a b limit 3', 'a b'],
  ['lmpop 1 a left', 'a'],
  ['eval script 2 a b c d', 'a b'],
  ['evalsha sha 0 a', ''],
  ['bzmpop 1 2 a b min', 'a b'],
  ['zunionstore to 2 a b weights 1 2', 'to a b'],
  ['xread count 2 streams a b 0-1 0-2', 'a b'],
  ['xread block 0 STREAMS a $', 'a'],
  ['xreadgroup group g c streams a b > >', 'a b'],
  ['sort a limit 0 5', 'a'],
  ['sort a alpha STORE to', 'a to'],
  ['georadius a 1 2 3 m', 'a'],
  ['georadius a 1 2 3 m count 1 store to', 'a to'],
  ['georadius a 1 2 3 m STOREDIST to', 'a to'],
  ['georadiusbymember a member 3 m storedist to', 'a to'],
  ['ping text', ''],
  ['wait 1 100', ''],
  ['publish channel message', ''],
  ['config get maxmemory', ''],
  ['script load text', ''],
  ['flushall async', ''],
];

const words = (text: string): string[] => text.split(' ').filter((word) => word !== '');

describe('the keys of a command', () => {
  it.each(KNOWN)('%s: %j', (command, expected) => {
    const [name = '', ...args] = words(command);
    const keys = commandKeys([name, ...args]);
    expect(keys).toStrictEqual(words(expected));
    // With each client, the same.
    expect(keys).toStrictEqual(new Command(name.toLowerCase(), args).getKeys());
  });

  it.each<[string, Parameters<typeof commandKeys>[0], readonly string[]]>([
    ['of a module begin with the first argument', ['json.set', 'a', '$', '1'], ['a']],
    ['are text, also where a number was given', ['del', 1, 2], ['1', '2']],
    ['are none where it has no arguments', ['get'], []],
    [
      'stand behind STREAMS, not behind what ends or begins like it',
      ['xread', 'my-streams', 'streams-2', 'streams', 'a', '>'],
      ['a'],
    ],
    [
      'stand behind STREAMS, not behind a group of that name',
      ['xreadgroup', 'group', 'streams', 'c', 'streams', 'a', '>'],
      ['a'],
    ],
    [
      'stand behind STORE, not behind what ends like it',
      ['sort', 'a', 'by', 'my-store', 'desc'],
      ['a'],
    ],
    [
      'stand behind STORE, not behind what begins like it',
      ['sort', 'a', 'by', 'stored', 'desc'],
      ['a'],
    ],
  ])('%s', (_, command, expected) => {
    expect(commandKeys(command)).toStrictEqual(expected);
  });
});
