import { afterEach, describe, expect, it } from '@jest/globals';
import { PROTOCOL } from '../../lib/engine/presence.js';
import { LoggedLocks } from '../observe/log/logged.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

let ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function open(server: RedisServer): Promise<LoggedLocks> {
  const locks = await LoggedLocks.open({ redis: server.url });
  ends.push(() => locks.end());
  return locks;
}

/** Resolves with the name and the text of the only record, once messages reach its instance: it is written again at that moment. */
const recordIn = (server: RedisServer): Promise<readonly [name: string, text: string]> =>
  eventually(async () => {
    const [name] = (await server.command('KEYS', 'lock:{instances}:*')) as string[];
    const text = name && ((await server.command('GET', name)) as string);
    return text?.includes('"address"') === true && [name!, text];
  });

describe('the number of the protocol', () => {
  it('is in the record of an instance, and one that meets another number warns of it', async () => {
    const server = await RedisServer.start();
    ends.push(() => server.stop());
    const one = await open(server);
    const [name, text] = await recordIn(server);
    expect(JSON.parse(text)).toMatchObject({ protocol: PROTOCOL });

    // The next report of the first one is 5 s away.
    const other = JSON.stringify({ ...(JSON.parse(text) as object), protocol: PROTOCOL + 1 });
    await server.command('SET', name, other, 'KEEPTTL');
    const later = await open(server);
    await eventually(() => later.logged.length > 0);
    expect(later.logged).toEqual([
      expect.stringMatching(
        /with another version of Holdfast: its protocol has the number 2, and that of this version 1/,
      ),
    ]);
    expect(one.logged).toEqual([]);
  });

  it('that is the same is nothing to warn of', async () => {
    const server = await RedisServer.start();
    ends.push(() => server.stop());
    const one = await open(server);
    await recordIn(server);
    const later = await open(server);
    await eventually(async () => {
      expect(await server.command('KEYS', 'lock:{instances}:*')).toHaveLength(2);
    });
    await (await later.acquire('key')).release();
    expect([...one.logged, ...later.logged]).toEqual([]);
  });
});
