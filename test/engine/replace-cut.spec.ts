import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockAdmin } from '../../lib/admin/lock-admin.js';
import { LockLostError } from '../../lib/errors.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { deferred, eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

describe('a holder whose lock another process ends is notified of it', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  const opened: Locks[] = [];

  beforeAll(async () => {
    server = await RedisServer.start();
    proxy = await TcpProxy.start(server.port);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.shutdown(0)));
  });
  afterAll(async () => {
    await proxy.stop();
    await server.stop();
  });

  /** A process that can be sent messages. */
  async function machine(host: string, redis: string): Promise<Locks> {
    const self = { host, pid: 1, application: 'shop', version: undefined };
    const locks = new Locks({ redis }, systemRuntime, self);
    opened.push(locks);
    await locks.open();
    const admin = new LockAdmin(locks);
    await eventually(async () =>
      (await admin.instances()).some((each) => each.host === host && each.isListening),
    );
    return locks;
  }

  const subscribers = async (): Promise<readonly string[]> => {
    const list = String(await server.command('CLIENT', 'LIST', 'TYPE', 'pubsub'));
    return [...list.matchAll(/^id=(\d+)/gm)].map(([, id = '']) => id);
  };

  /** Two processes, and their connections for messages. */
  async function two() {
    const holder = await machine('a', server.url);
    const [ofHolder = ''] = await subscribers();
    const other = await machine('b', `redis://127.0.0.1:${String(proxy.port)}`);
    const ofOther = (await subscribers()).find((id) => id !== ofHolder) ?? '';
    return { holder, other, ofHolder, ofOther };
  }

  type Two = Awaited<ReturnType<typeof two>>;

  const kill = async (id: string): Promise<void> => {
    await server.command('CLIENT', 'KILL', 'ID', id);
  };

  const cutAt = (what: string): void => {
    void proxy.whenClientSends(what).then(() => {
      proxy.cut();
    });
  };

  const FAULTS: readonly (readonly [string, (both: Two) => unknown])[] = [
    ['its connection for messages has just broken', ({ ofHolder }) => kill(ofHolder)],
    ['that of the other process has just broken', ({ ofOther }) => kill(ofOther)],
    [
      'the other process loses its connection as it looks for instances',
      () => cutAt('{instances}:'),
    ],
    ['the other process loses its connection as it sends the message', () => cutAt('publish')],
  ];

  it.each(FAULTS)(
    'and replaced when its work has ended: %s',
    async (_, happens) => {
      const both = await two();
      const events: string[] = [];
      const holds = deferred();
      const older = both.holder.run('doc', async ({ signal }) => {
        holds.resolve();
        await sleep(60_000, undefined, { signal }).catch(() => undefined);
        await sleep(300);
        events.push('older ends');
      });
      const replaced = expect(older).rejects.toMatchObject({ reason: 'replaced' });
      await holds.promise;
      await happens(both);
      await both.other.run('doc', { onLocked: 'replace', replaceWait: '30s' }, () => {
        events.push('newer begins');
      });
      await replaced;
      expect(events).toEqual(['older ends', 'newer begins']);
    },
    60_000,
  );

  it.each(FAULTS)(
    'by an operator: %s',
    async (_, happens) => {
      const both = await two();
      const lock = await both.holder.acquire('doc');
      const lost = new Promise<unknown>((resolve) => {
        lock.signal.addEventListener('abort', () => {
          resolve(lock.signal.reason);
        });
      });
      await happens(both);
      expect(await both.other.forceRelease('doc', { reason: 'stuck' })).toBe(true);
      const reason = await lost;
      expect(reason).toBeInstanceOf(LockLostError);
      expect(reason).toMatchObject({ reason: 'force-released', intervention: { reason: 'stuck' } });
    },
    60_000,
  );
});
