import { eventually } from './eventually.js';
import { RedisServer } from './redis-server.js';

const SENTINELS = 3;
const QUORUM = 2;
const IN_ORDER_WITHIN_MS = 30_000;

/** One master, one replica and three sentinels that watch them: real processes on loopback ports. */
export class RedisSentinel {
  /** The name of the group, for the `name` option of ioredis. */
  readonly name = 'holdfast';
  /** The sentinel processes. */
  readonly sentinelServers: readonly RedisServer[];
  #master: RedisServer;
  #replica: RedisServer;

  private constructor(
    master: RedisServer,
    replica: RedisServer,
    sentinelServers: readonly RedisServer[],
  ) {
    this.#master = master;
    this.#replica = replica;
    this.sentinelServers = sentinelServers;
  }

  /** Starts all five processes and resolves once every sentinel knows the other two and the replica. */
  static async start(): Promise<RedisSentinel> {
    const started: RedisServer[] = [];
    const start = async (...args: Parameters<typeof RedisServer.start>): Promise<RedisServer> => {
      const server = await RedisServer.start(...args);
      started.push(server);
      return server;
    };
    try {
      const master = await start();
      const replica = await start({ replicaOf: master });
      const sentinels: RedisServer[] = [];
      for (let index = 0; index < SENTINELS; index += 1) {
        sentinels.push(
          await start({ mode: 'sentinel', config: sentinelConfig('holdfast', master.port) }),
        );
      }
      const group = new RedisSentinel(master, replica, sentinels);
      await Promise.all(sentinels.map((sentinel) => makeQuick(sentinel)));
      await group.#isInOrder();
      return group;
    } catch (error) {
      await Promise.all(started.map((server) => server.stop()));
      throw error;
    }
  }

  /** The present master; after `failOver()` the former replica. */
  get master(): RedisServer {
    return this.#master;
  }

  /** The other server; after `failOver()` the killed master, which `rejoin()` brings back as a replica. */
  get replica(): RedisServer {
    return this.#replica;
  }

  /** For the `sentinels` option of ioredis. */
  get sentinels(): { host: string; port: number }[] {
    return this.sentinelServers.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** Kills the master and resolves once all sentinels name the replica as the master and it accepts writes. */
  async failOver(): Promise<void> {
    const [killed, promoted] = [this.#master, this.#replica];
    await killed.kill();
    const withinMs = IN_ORDER_WITHIN_MS;
    await Promise.all(
      this.sentinelServers.map((sentinel) =>
        eventually(async () => (await this.#masterPortAt(sentinel)) === promoted.port, {
          withinMs,
        }),
      ),
    );
    await eventually(() => acceptsWrites(promoted), { withinMs });
    [this.#master, this.#replica] = [promoted, killed];
  }

  /** Brings the killed master back, as a replica at once: Sentinel takes 8 s and more for it, and 30 s after a pause of the machine. */
  async rejoin(): Promise<void> {
    await this.#replica.restart();
    await this.#replica.command('REPLICAOF', '127.0.0.1', this.#master.port);
  }

  /** Resolves when the replica has all data, and every sentinel would promote it. */
  async isComplete(): Promise<void> {
    await this.#replica.hasSynced(IN_ORDER_WITHIN_MS);
    await this.#isInOrder();
  }

  /** Stops all five processes. */
  async stop(): Promise<void> {
    await Promise.all(this.sentinelServers.map((sentinel) => sentinel.stop()));
    await Promise.all([this.#master.stop(), this.#replica.stop()]);
  }

  async #masterPortAt(sentinel: RedisServer): Promise<number> {
    const address = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name);
    return Number((address as string[])[1]);
  }

  async #isInOrder(): Promise<void> {
    await Promise.all(
      this.sentinelServers.map((sentinel) =>
        eventually(
          async () => {
            const facts = pairs(
              (await sentinel.command('SENTINEL', 'MASTER', this.name)) as string[],
            );
            const peers = Number(facts.get('num-other-sentinels'));
            const replicas = (await sentinel.command(
              'SENTINEL',
              'REPLICAS',
              this.name,
            )) as string[][];
            const [replica] = replicas.map(pairs);
            return (
              facts.get('flags') === 'master' &&
              peers === SENTINELS - 1 &&
              replicas.length === 1 &&
              replica?.get('flags') === 'slave' &&
              replica.get('master-link-status') === 'ok'
            );
          },
          { withinMs: IN_ORDER_WITHIN_MS },
        ),
      ),
    );
  }
}

function sentinelConfig(name: string, masterPort: number): Record<string, string> {
  return {
    [`sentinel monitor ${name}`]: `127.0.0.1 ${masterPort} ${QUORUM}`,
    [`sentinel down-after-milliseconds ${name}`]: '1000',
    [`sentinel failover-timeout ${name}`]: '2000',
    [`sentinel parallel-syncs ${name}`]: '1',
  };
}

/**
 * Shortens the sentinels' own periods (1 s between pings, 2 s between greetings, 10 s between inspections), and keeps
 * a busy machine from putting them to rest for 30 s (TILT). Redis 7 has the command; without it everything takes
 * seconds longer. A sentinel must be able to ping several times before it takes a server for dead: with pings as rare
 * as that, every fail-over was followed by another one, back to the server that had just been started again. A replica
 * may only be promoted if its last inspection is not older than five pings.
 */
async function makeQuick(sentinel: RedisServer): Promise<void> {
  const periods = ['PING-PERIOD', 250, 'PUBLISH-PERIOD', 200, 'INFO-PERIOD', 500];
  await sentinel
    .command('SENTINEL', 'DEBUG', ...periods, 'TILT-TRIGGER', 20_000)
    .catch(() => undefined);
}

async function acceptsWrites(server: RedisServer): Promise<boolean> {
  const key = '{holdfast-test}:accepts-writes';
  await server.command('SET', key, '1'); // rejects with READONLY while it is a replica
  return (await server.command('DEL', key)) === 1;
}

function pairs(list: readonly string[]): Map<string, string> {
  const facts = new Map<string, string>();
  for (let index = 0; index + 1 < list.length; index += 2)
    facts.set(String(list[index]), String(list[index + 1]));
  return facts;
}
