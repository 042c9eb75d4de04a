import { describe, expect, it } from '@jest/globals';
import type { RedisClient } from '../../lib/store/redis/client/redis-client.js';
import { replyError } from '../../lib/store/redis/client/reply-errors.js';
import {
  DatabaseRefusal,
  verifyConnection,
} from '../../lib/store/redis/client/verify-connection.js';

/** A client that answers with what the test says, or rejects with that if it is an error. */
function clientWith(answers: Readonly<Record<string, unknown>>) {
  const asked: (readonly unknown[])[] = [];
  const command = async (name: string, ...args: readonly unknown[]): Promise<unknown> => {
    asked.push([name, ...args]);
    const answer = answers[name];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { client: { command } as unknown as RedisClient, asked };
}

const INFO = '# Server\r\nold_run_id:7\r\nrun_id:4f2a9c\r\nprocess_id:1\r\n';

const verified = (
  answers: Readonly<Record<string, unknown>>,
  { database = 0, readsRun = true } = {},
): Promise<string | undefined> =>
  verifyConnection(clientWith(answers).client, { database, readsRun });

describe('a new connection', () => {
  it('is asked nothing in database 0 when its server need not be told from others', async () => {
    const { client, asked } = clientWith({});
    expect(await verifyConnection(client, { database: 0, readsRun: false })).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('is asked for the run of its server', async () => {
    const { client, asked } = clientWith({ info: INFO });
    expect(await verifyConnection(client, { database: 0, readsRun: true })).toBe('4f2a9c');
    expect(asked).toEqual([['info', 'server']]);
  });

  it('selects its database', async () => {
    const { client, asked } = clientWith({ select: 'OK' });
    await verifyConnection(client, { database: 3, readsRun: false });
    expect(asked).toEqual([['select', 3]]);
  });

  it('is used also where the server does not say which run it is', async () => {
    expect(await verified({ info: '' })).toBeUndefined();
    expect(await verified({ info: replyError('NOPERM no permissions to run info') })).toBe(
      undefined,
    );
  });

  it.each([
    ['the connection breaks', new Error('the connection closed')],
    ['the server is loading', replyError('LOADING Redis is loading the dataset in memory')],
  ])('is not used where %s', async (_when, error) => {
    await expect(verified({ info: error })).rejects.toBe(error);
    await expect(verified({ select: error }, { database: 3 })).rejects.toBe(error);
  });

  it('is refused with what to do where the database may not be selected', async () => {
    const error = replyError('ERR no SELECT at db.example.');
    const refusal = await verified({ select: error }, { database: 3 }).catch((e: unknown) => e);
    expect(refusal).toBeInstanceOf(DatabaseRefusal);
    expect((refusal as Error).cause).toBe(error);
    expect((refusal as Error).message).toBe(
      'cannot use database 3: ERR no SELECT at db.example. Allow the Redis user the command SELECT ("+select"), ' +
        'or name a database that the server has',
    );
  });
});
