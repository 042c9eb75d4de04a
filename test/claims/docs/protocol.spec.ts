import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { adminNames, epochName, keyNames } from '../../../lib/store/redis/scripts/key-names.js';
import { give, take } from '../../../lib/store/redis/scripts/plain.js';

const protocol = readFileSync(
  new URL('../../../docs/internals/protocol.md', import.meta.url),
  'utf8',
);

/** The commands of a script, in their order. */
const commandsIn = (lua: string): readonly string[] =>
  Array.from(lua.matchAll(/redis\.p?call\('(\w+)'/g), ([, command = '']) => command);

/** The commands that the page lists under the name of a script. */
const commandsOf = (name: string): readonly string[] => {
  const [, lines = ''] = new RegExp(`^${name}\\n((?:  .*\\n)+)`, 'm').exec(protocol) ?? [];
  return Array.from(lines.matchAll(/^ {2}(\w+)/gm), ([, command = '']) => command);
};

describe('docs/internals/protocol.md', () => {
  it('lists the commands of the two plain scripts, in their order', () => {
    const [refusal, granting] = [['GET', 'PTTL'], commandsOf('take')];
    expect(commandsIn(take.lua)).toEqual([...granting, ...refusal]);
    expect(commandsIn(give.lua)).toEqual(commandsOf('give'));
  });

  it('lists all keys in Redis', () => {
    const [, table = ''] = /^\| Redis key .*\n((?:\|.*\n)+)/m.exec(protocol) ?? [];
    const { index, audit } = adminNames('lock:');
    const names = [
      ...Object.values(keyNames('lock:')('order:42')),
      epochName('lock:'),
      index,
      audit,
    ];
    for (const name of names) expect(table).toContain(`\`${String(name)}\``);
  });
});
