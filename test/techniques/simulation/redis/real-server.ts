import { Redis, type ChainableCommander } from 'ioredis';
import { script } from '../../../../lib/store/redis/scripts/script.js';
import { RedisServer } from '../../../support/redis-server.js';
import { BEGINNING_US, type ClockShim } from './clock-shim.js';
import {
  LOADS,
  shownKey,
  shownReply,
  type ComparedServer,
  type Messages,
  type Outcome,
} from './compared-server.js';
import type { ChannelKind } from './model.js';
import type { Step } from './steps.js';

/** Everything that is in a server. */
const DUMP = script(`
local dump = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type, value = redis.call('TYPE', key).ok, nil
  if type == 'string' then value = { redis.call('GET', key) }
  elseif type == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else value = redis.call('HGETALL', key) end
  dump[#dump + 1] = { key, type, redis.call('PTTL', key), value }
end
return dump`);

type Dump = readonly (readonly [key: string, type: string, leftMs: number, value: string[]])[];
type Listening = Extract<Step, { listens: string }>;

/** A real server under a virtual clock, as steps happen to it. */
export class RealServer implements ComparedServer {
  readonly runId: string;
  readonly #server: RedisServer;
  readonly #client: Redis;
  /** One for each kind of channel: without plain channels, ioredis takes a connection for one that does not listen. */
  readonly #listeners: Readonly<Record<ChannelKind, Redis>>;
  #messages: Messages = { plain: [], sharded: [] };
  #nowUs = BEGINNING_US;

  private constructor(server: RedisServer, runId: string) {
    this.runId = runId;
    this.#server = server;
    const connect = (): Redis => new Redis(server.url, { protocol: 2 });
    this.#client = connect();
    this.#listeners = { plain: connect(), sharded: connect() };
    for (const [kind, client] of Object.entries(this.#listeners))
      client.on(kind === 'plain' ? 'message' : 'smessage', (channel: string, message: string) => {
        this.#messages[kind as ChannelKind].push(`${channel}: ${message}`);
      });
  }

  static async start({ environment }: ClockShim): Promise<RealServer> {
    const config = { 'enable-debug-command': 'yes' };
    const server = await RedisServer.start({ environment, config });
    for (const load of [...LOADS, ['SCRIPT', 'LOAD', DUMP.lua]]) await server.command(...load);
    const info = String(await server.command('INFO', 'server'));
    return new RealServer(server, /run_id:(\w+)/.exec(info)?.[1] ?? '');
  }

  async stop(): Promise<void> {
    for (const client of [this.#client, ...Object.values(this.#listeners)]) client.disconnect();
    await this.#server.stop();
  }

  async play(steps: readonly Step[]): Promise<readonly Outcome[]> {
    const { plain, sharded } = this.#listeners;
    await Promise.all([plain.unsubscribe(), sharded.sunsubscribe()]);
    this.#messages = { plain: [], sharded: [] };
    await this.#client.pipeline().flushall().config('SET', 'maxmemory', 0).exec();
    const outcomes: Outcome[] = [];
    // As much as possible in one packet: what takes time is to send and to receive.
    let pipeline = this.#client.pipeline();
    for (const step of steps) {
      if ('listens' in step) {
        outcomes.push(...(await outcomesOf(pipeline)));
        pipeline = this.#client.pipeline();
        await this.#listen(step);
      }
      this.#add(step, pipeline);
    }
    return [...outcomes, ...(await outcomesOf(pipeline))];
  }

  async messages(): Promise<Messages> {
    const { plain, sharded } = this.#listeners;
    await Promise.all([plain.ping(), sharded.ping()]); // what was said before has come when these have
    return this.#messages;
  }

  /** Three commands: one for the clock, what is to happen, and a look at the keys. */
  #add(step: Step, pipeline: ChainableCommander): void {
    // Redis cuts off what is less than a microsecond.
    const byUs = step.atUs - this.#nowUs;
    pipeline.call('DEBUG', 'SLEEP', (byUs + Math.sign(byUs) / 2) / 1_000_000);
    this.#nowUs = step.atUs;
    if ('command' in step) {
      const [name, ...args] = step.command;
      pipeline.call(name, ...args);
    } else if ('memory' in step) {
      pipeline.config('SET', 'maxmemory', step.memory === 'full' ? 1 : 0);
    } else {
      pipeline.echo('OK');
    }
    pipeline.evalsha(DUMP.sha, 0);
  }

  async #listen({ listens, channel, kind }: Listening): Promise<void> {
    const { plain, sharded } = this.#listeners;
    if (kind === 'plain')
      await (listens === 'begins' ? plain.subscribe(channel) : plain.unsubscribe(channel));
    else await (listens === 'begins' ? sharded.ssubscribe(channel) : sharded.sunsubscribe(channel));
  }
}

async function outcomesOf(pipeline: ChainableCommander): Promise<readonly Outcome[]> {
  const results = (await pipeline.exec()) ?? [];
  const outcomes: Outcome[] = [];
  for (let index = 0; index < results.length; index += 3) {
    const [[sleepError], [error, reply], [dumpError, dump]] = results.slice(index) as [
      ...[[unknown], [unknown, unknown], [unknown, Dump]],
    ];
    if (sleepError ?? dumpError) throw sleepError ?? dumpError;
    outcomes.push({ reply: shownReply(error ?? reply), keys: shownKeys(dump) });
  }
  return outcomes;
}

const shownKeys = (dump: Dump): readonly string[] =>
  dump
    .map(([key, type, leftMs, value]) => shownKey(key, type, leftMs, inOrder(type, value)))
    .sort();

/** Of a hash, Redis gives the fields in any order. */
function inOrder(type: string, value: readonly string[]): readonly string[] {
  if (type !== 'hash') return value;
  const fields = value.filter((_, index) => index % 2 === 0);
  const pairs = fields.map((field, index) => [field, value[2 * index + 1] as string] as const);
  return pairs.sort(([left], [right]) => (left < right ? -1 : 1)).flat();
}
