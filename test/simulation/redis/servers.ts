import { Redis } from 'ioredis';
import { RedisServer } from '../../support/redis-server.js';
import { ModelError, RedisModel, type ChannelKind, type ModelCommand } from './model.js';
import { SCRIPTS, type Step } from './steps.js';
import type { VirtualClock } from './virtual-clock.js';

/** What a step showed of a server: the answer, and the keys afterwards. */
export interface Outcome {
  readonly reply: unknown;
  readonly keys: readonly string[];
}

/** A server that steps happen to. */
export interface ComparedServer {
  /** Makes it like new: nothing in it, nobody listens, all scripts loaded. */
  begin(atUs: number): Promise<void>;
  play(step: Step): Promise<Outcome>;
  /** What those who listened have been told since the beginning. */
  messages(): Promise<readonly string[]>;
}

/** Of each kind in their order. */
type Messages = Readonly<Record<ChannelKind, string[]>>;

const LOADS = Object.values(SCRIPTS).map(({ lua }) => ['SCRIPT', 'LOAD', lua] as const);

const shown = (key: string, type: string, left: number, value: readonly unknown[]): string =>
  `${key} ${type} ${left} ${JSON.stringify(value)}`;

export class ModelServer implements ComparedServer {
  readonly #runId: string;
  readonly #listened = new Set<string>();
  #messages: Messages = { plain: [], sharded: [] };
  #model = new RedisModel();

  constructor(runId: string) {
    this.#runId = runId;
  }

  async begin(atUs: number): Promise<void> {
    this.#model = new RedisModel({ runId: this.#runId });
    this.#messages = { plain: [], sharded: [] };
    this.#listened.clear();
    for (const load of LOADS) this.execute(load, atUs);
  }

  async play(step: Step): Promise<Outcome> {
    const reply = this.happen(step);
    return { reply, keys: this.#keys(step.atUs) };
  }

  async messages(): Promise<readonly string[]> {
    return [...this.#messages.plain, ...this.#messages.sharded];
  }

  /** The same at once. */
  happen(step: Step): unknown {
    if ('command' in step) return this.execute(step.command, step.atUs);
    if ('memory' in step) this.#model.memory = step.memory;
    else if (step.listens === 'begins') this.#listened.add(`${step.kind} ${step.channel}`);
    else this.#listened.delete(`${step.kind} ${step.channel}`);
    return 'OK';
  }

  execute(command: ModelCommand, nowUs: number): unknown {
    const reply = this.#model.execute(command, {
      nowUs,
      publish: (channel, message, kind) => {
        if (!this.#listened.has(`${kind} ${channel}`)) return 0;
        this.#messages[kind].push(`${channel}: ${message}`);
        return 1;
      },
      subscribers: (channel, kind) => (this.#listened.has(`${kind} ${channel}`) ? 1 : 0),
    });
    return printable(reply);
  }

  /** When keys expire. */
  expiries(atUs: number): readonly number[] {
    const all = this.#model.keysAt(atUs).map(({ expiresAtMs }) => expiresAtMs);
    return all.filter((expiresAtMs) => expiresAtMs !== Infinity);
  }

  #keys(atUs: number): readonly string[] {
    return this.#model
      .keysAt(atUs)
      .map(({ key, type, value, expiresAtMs }) => {
        const left = expiresAtMs === Infinity ? -1 : expiresAtMs - Math.floor(atUs / 1_000);
        const parts = typeof value === 'string' ? [value] : value;
        return shown(key, type, left, parts);
      })
      .sort();
  }
}

/** Everything that is in a server. */
const DUMP = `
local dump = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type, value = redis.call('TYPE', key).ok, nil
  if type == 'string' then value = { redis.call('GET', key) }
  elseif type == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else value = redis.call('HGETALL', key) end
  dump[#dump + 1] = { key, type, redis.call('PTTL', key), value }
end
return dump`;

type Dump = readonly (readonly [
  key: string,
  type: string,
  left: number,
  value: readonly string[],
])[];

/** A real server under a virtual clock. */
export class RealServer implements ComparedServer {
  readonly runId: string;
  readonly #server: RedisServer;
  readonly #clock: VirtualClock;
  readonly #client: Redis;
  /** One for each kind of channel: without plain channels, ioredis takes a connection for one that does not listen. */
  readonly #listeners: Readonly<Record<ChannelKind, Redis>>;
  #messages: Messages = { plain: [], sharded: [] };

  private constructor(server: RedisServer, clock: VirtualClock, runId: string) {
    this.runId = runId;
    this.#server = server;
    this.#clock = clock;
    this.#client = new Redis(server.url, { protocol: 2 });
    const listener = (): Redis => new Redis(server.url, { protocol: 2 });
    this.#listeners = { plain: listener(), sharded: listener() };
    for (const [kind, client] of Object.entries(this.#listeners))
      client.on(kind === 'plain' ? 'message' : 'smessage', (channel: string, message: string) => {
        this.#messages[kind as ChannelKind].push(`${channel}: ${message}`);
      });
  }

  static async start(clock: VirtualClock): Promise<RealServer> {
    const server = await RedisServer.start({ environment: clock.environment });
    const info = String(await server.command('INFO', 'server'));
    for (const load of LOADS) await server.command(...load);
    return new RealServer(server, clock, /run_id:(\w+)/.exec(info)?.[1] ?? '');
  }

  async stop(): Promise<void> {
    this.#client.disconnect();
    for (const listener of Object.values(this.#listeners)) listener.disconnect();
    await this.#server.stop();
  }

  async begin(atUs: number): Promise<void> {
    this.#clock.set(atUs);
    const { plain, sharded } = this.#listeners;
    await Promise.all([plain.unsubscribe(), sharded.sunsubscribe()]);
    this.#messages = { plain: [], sharded: [] };
    await this.#client.pipeline().flushall().config('SET', 'maxmemory', 0).exec();
  }

  async play(step: Step): Promise<Outcome> {
    this.#clock.set(step.atUs);
    const pipeline = this.#client.pipeline();
    if ('command' in step) {
      const [name, ...args] = step.command;
      pipeline.call(name, ...args);
    } else if ('memory' in step) {
      pipeline.config('SET', 'maxmemory', step.memory === 'full' ? 1 : 0);
    } else {
      await this.#listen(step);
      pipeline.echo('OK');
    }
    const [first, second] = (await pipeline.eval(DUMP, 0).exec()) ?? [];
    const [error, reply] = first ?? [];
    const keys = second?.[1] as Dump;
    return {
      reply: error ? error.message : printable(reply),
      keys: keys
        .map(([key, type, left, value]) => shown(key, type, left, inOrder(type, value)))
        .sort(),
    };
  }

  async messages(): Promise<readonly string[]> {
    const { plain, sharded } = this.#listeners;
    await Promise.all([plain.ping(), sharded.ping()]); // what was said before has come when these have
    return [...this.#messages.plain, ...this.#messages.sharded];
  }

  async #listen({ listens, channel, kind }: Extract<Step, { listens: string }>): Promise<void> {
    const { plain, sharded } = this.#listeners;
    if (kind === 'plain')
      await (listens === 'begins' ? plain.subscribe(channel) : plain.unsubscribe(channel));
    else await (listens === 'begins' ? sharded.ssubscribe(channel) : sharded.sunsubscribe(channel));
  }
}

/** Of a hash, Redis gives the fields in any order. */
function inOrder(type: string, value: readonly string[]): readonly string[] {
  if (type !== 'hash') return value;
  const fields = value.filter((_, index) => index % 2 === 0);
  const pairs = fields.map((field, index) => [field, value[2 * index + 1] as string] as const);
  return pairs.sort(([left], [right]) => (left < right ? -1 : 1)).flat();
}

/** Errors as their texts, also within lists. */
function printable(reply: unknown): unknown {
  if (reply instanceof ModelError || reply instanceof Error) return reply.message;
  return Array.isArray(reply) ? reply.map(printable) : reply;
}
