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

/** Resolves with the only record. */
const recordIn = (server: RedisServer): Promise<object> =>
  eventually(async () => {
    const [name] = (await server.command('KEYS', 'lock:{instances}:*')) as string[];
    return (
      name !== undefined && (JSON.parse((await server.command('GET', name)) as string) as object)
    );
  });

describe('the number of the protocol', () => {
  it('is in the record of an instance, and one that meets another number warns of it', async () => {
    const server = await RedisServer.start();
    ends.push(() => server.stop());
    await open(server);
    const record = await recordIn(server);
    expect(record).toMatchObject({ protocol: PROTOCOL });

    const other = JSON.stringify({ ...record, id: 'other', protocol: PROTOCOL + 1 });
    await server.command('SET', 'lock:{instances}:other', other, 'PX', '60000');
    await server.command('ZADD', 'lock:{instances}', String(Date.now()), 'other');
    const later = await open(server);
    await eventually(() => later.logged.length > 0);
    // The first one has the same number: that is nothing to warn of.
    expect(later.logged).toEqual([
      expect.stringMatching(
        /with another version of Holdfast: its protocol has the number 2, and that of this version 1/,
      ),
    ]);
  });
});
