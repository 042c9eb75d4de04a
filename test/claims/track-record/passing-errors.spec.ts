import { afterEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { LockStoreUnavailableError, type LockModuleOptions } from 'nestjs-holdfast';
import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { Locks } from '../../support/locks.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer } from '../../support/redis-server.js';

let ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function open(options: LockModuleOptions): Promise<Locks> {
  const locks = new Locks(options);
  ends.push(() => locks.shutdown(0));
  await locks.open();
  return locks;
}

/** A server, and a connection to it that is there before anything goes wrong. */
async function start(): Promise<{ readonly server: RedisServer; readonly admin: Redis }> {
  const server = await RedisServer.start();
  const admin = new Redis(server.port, '127.0.0.1', { lazyConnect: true });
  await admin.connect();
  ends.push(async () => {
    admin.disconnect();
    await server.stop();
  });
  return { server, admin };
}

const lastSave = async (admin: Redis, status: string): Promise<void> => {
  await admin.bgsave();
  await eventually(async () => {
    const persistence = await admin.info('persistence');
    expect(persistence).toContain(`rdb_last_bgsave_status:${status}`);
    expect(persistence).toContain('rdb_bgsave_in_progress:0');
  });
};

interface Trouble {
  /** What the error says of it. Default: its name. */
  readonly told?: string;
  begin(admin: Redis, server: RedisServer): Promise<unknown>;
  end(admin: Redis): Promise<unknown>;
}

/** As an operator sees them pass. */
const TROUBLES: Readonly<Record<string, Trouble>> = {
  OOM: {
    begin: (admin) => admin.config('SET', 'maxmemory', 1),
    end: (admin) => admin.config('SET', 'maxmemory', 0),
  },
  // Its snapshots fail while a folder has their name.
  MISCONF: {
    begin: async (admin) => {
      mkdirSync(await snapshotOf(admin));
      await admin.config('SET', 'save', '3600 1');
      await lastSave(admin, 'err');
    },
    end: async (admin) => {
      rmdirSync(await snapshotOf(admin));
      await lastSave(admin, 'ok');
    },
  },
  NOREPLICAS: {
    begin: (admin) => admin.config('SET', 'min-replicas-to-write', 1),
    end: (admin) => admin.config('SET', 'min-replicas-to-write', 0),
  },
  READONLY: {
    begin: (admin) => admin.replicaof('127.0.0.1', 1),
    end: (admin) => admin.replicaof('NO', 'ONE'),
  },
  MASTERDOWN: {
    begin: async (admin) => {
      await admin.config('SET', 'replica-serve-stale-data', 'no');
      await admin.replicaof('127.0.0.1', 1);
    },
    end: (admin) => admin.replicaof('NO', 'ONE'),
  },
  BUSY: {
    begin: async (admin, server) => {
      await admin.config('SET', 'lua-time-limit', 1);
      void server.command('EVAL', 'while true do end', 0).catch(() => undefined);
      await eventually(() => expect(admin.ping()).rejects.toThrow('BUSY'));
    },
    end: (admin) => admin.script('KILL'),
  },
  // The server closes each new connection. ioredis does not report what it says before: a request finds no connection, or one that breaks.
  'not connected': {
    told: '(connection): ',
    begin: async (admin) => {
      await admin.config('SET', 'maxclients', 1);
      await admin.call('client', 'kill', 'type', 'normal', 'skipme', 'yes');
    },
    end: (admin) => admin.config('SET', 'maxclients', 1_000),
  },
};

const snapshotOf = async (admin: Redis): Promise<string> => {
  const [, folder = ''] = await admin.config('GET', 'dir');
  return join(folder, 'dump.rdb');
};

const begun = (locks: Locks): Promise<unknown> =>
  new Promise((resolve) => {
    locks.on('waiting', ({ because }) => {
      if (because === 'unavailable') resolve(because);
    });
  });

describe('TR-73 a server that refuses everything for a moment', () => {
  it.each(Object.entries(TROUBLES))('is waited for: %s', async (code, trouble) => {
    const { server, admin } = await start();
    const locks = await open({ redis: server.url });
    await (await locks.acquire('key')).release(); // connected, and the scripts are known
    await trouble.begin(admin, server);
    await eventually(async () => {
      const refusal: unknown = await locks.tryAcquire('key').catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LockStoreUnavailableError);
      expect((refusal as LockStoreUnavailableError).detail).toContain(trouble.told ?? code);
    });
    const waiting = begun(locks);
    const acquiring = locks.acquire('key', { wait: '30s' });
    await Promise.race([waiting, acquiring]);
    await trouble.end(admin);
    expect((await acquiring).isHeld).toBe(true);
  });
});

const onAll = (servers: readonly RedisServer[], maxmemory: string): Promise<unknown> =>
  Promise.all(servers.map((server) => server.command('CONFIG', 'SET', 'maxmemory', maxmemory)));

describe('TR-73 full memory is waited out', () => {
  it.each([[[0]], [[0, 1]], [[0, 1, 2]]])(
    'by callers over three masters: %j of them',
    async (full) => {
      const servers = (await Promise.all([start(), start(), start()])).map(({ server }) => server);
      const locks = await open({ redis: servers.map(({ url }) => url) });
      const these = full.map((index) => servers[index] as RedisServer);
      await onAll(these, '1');
      const waiting = begun(locks);
      const acquiring = locks.acquire('key', { wait: '30s' });
      await Promise.race([waiting, acquiring]);
      await onAll(these, '0');
      expect((await acquiring).isHeld).toBe(true);
    },
  );

  it('on a Cluster', async () => {
    const cluster = await RedisCluster.start();
    ends.push(() => cluster.stop());
    const locks = await open({ redis: new Cluster(cluster.startupNodes, { lazyConnect: true }) });
    await onAll(cluster.nodes, '1');
    const waiting = begun(locks);
    const acquiring = locks.acquire(['a', 'b', 'c'], { wait: '30s' });
    await Promise.race([waiting, acquiring]);
    await onAll(cluster.nodes, '0');
    expect((await acquiring).isHeld).toBe(true);
  }, 60_000);

  it('by work that is to be done once', async () => {
    const { server } = await start();
    const locks = await open({ redis: server.url });
    await onAll([server], '1');
    const waiting = begun(locks);
    const working = locks.runOnce('work', { wait: '30s', keepDone: '1h' }, () => 'done');
    await Promise.race([waiting, working]);
    await onAll([server], '0');
    expect(await working).toMatchObject({ value: 'done' });
  });
});
