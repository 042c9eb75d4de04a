import { LockStoreUnavailableError, type NodeFailure } from '../../../errors.js';
import type { CancelTimer } from '../../../time/clock.js';
import type {
  AdminStore,
  FoundInstance,
  FoundKey,
  FoundOnce,
  InstanceRecord,
} from '../../admin-store.js';
import type { Unavailable } from '../../lock-store.js';
import { MARK } from '../../owner-token.js';
import type { Command, CommandResult } from '../client/redis-client.js';
import { adminNames, keyIn } from '../scripts/key-names.js';
import {
  countIn,
  endless,
  holdersIn,
  instanceIn,
  listIn,
  momentIn,
  numberIn,
  onceIn,
  pairsIn,
  placeIn,
  textsIn,
} from './admin-replies.js';
import type { Server } from './server.js';

/** A node did not answer, or not with what can be used. */
class Outage extends Error {
  readonly nodes: readonly NodeFailure[];

  constructor({ nodes }: Unavailable) {
    super('no answer');
    this.nodes = nodes;
  }
}

function failuresIn(error: unknown): readonly NodeFailure[] {
  if (error instanceof Outage) return error.nodes;
  throw error;
}

/** A key of another type is no lock. After any other error nothing is known: a right may be missing. */
const READS = { passes: /^WRONGTYPE\b/, whileDown: 'waits' } as const;

/** Nothing was written when one of the commands was refused. */
const WRITES = { passes: /^$/, whileDown: 'fails' } as const;

const PLACES = 100;
const MOST_INSTANCES = 1_000;
const MOST_NOTES = 1_000;

/** Far longer than a caller takes to replace a holder. */
const NEWEST_MS = 3_600_000;

/** At once: a fail-over between the two would leave a key without an end. */
const ARRIVE = `local number = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return number`;

/** By the server's clock. By its own, an instance whose clock is ahead would remove all others. */
const ENLIST = [
  `local time, life = redis.call('TIME'), tonumber(ARGV[2])`,
  `local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)`,
  `redis.call('ZADD', KEYS[1], now, ARGV[1])`,
  `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)`,
  `return redis.call('PEXPIRE', KEYS[1], life)`,
].join('\n');

/** Work that was done meanwhile stays done. */
const FORGET = [
  `local known = redis.call('HMGET', KEYS[1], 'state', 'attempt')`,
  `if known[1] ~= ARGV[1] or known[2] ~= ARGV[2] then return 0 end`,
  `return redis.call('DEL', KEYS[1])`,
].join('\n');

/** For so long those are waited for that answer after a majority. */
const LATECOMERS_MS = 250;

/** For operators. With plain commands: nothing of it is worth a script, and nothing of it decides on a lock. */
export class RedisAdminStore implements AdminStore {
  readonly #nodes: readonly Server[];
  readonly #quorum: number;
  readonly #merged: (key: string, found: readonly FoundKey[]) => FoundKey | undefined;

  /**
   * @param quorum how many nodes have to answer
   * @param merged what several of them know of a key
   */
  constructor(
    nodes: readonly Server[],
    quorum = 1,
    merged: (key: string, found: readonly FoundKey[]) => FoundKey | undefined = (_, [found]) =>
      found,
  ) {
    this.#nodes = nodes;
    this.#quorum = quorum;
    this.#merged = merged;
  }

  listen(onMessage: (text: string) => void): () => void {
    for (const node of this.#nodes) node.onMessage = onMessage;
    return () => {
      for (const node of this.#nodes) node.onMessage = undefined;
    };
  }

  get isHearing(): boolean {
    return this.#nodes.some(({ inbox }) => inbox.isSubscribed);
  }

  /** One address a node, in their order; of those, too, over which nothing is heard yet: a place in line is known by its channel. */
  address(): string | undefined {
    const isReachable = this.#nodes.some(({ inbox }) => inbox.isReachable);
    return isReachable ? JSON.stringify(this.#nodes.map(({ inbox }) => inbox.address)) : undefined;
  }

  async report(record: InstanceRecord, lifeMs: number): Promise<void> {
    await this.#write('describe this instance to', ({ prefix }) => {
      const { index, record: nameOf } = adminNames(prefix);
      return [
        ['set', nameOf(record.id), JSON.stringify({ ...record, lifeMs }), 'px', lifeMs],
        ['eval', ENLIST, 1, index, record.id, 2 * lifeMs],
      ];
    });
  }

  async retract(id: string): Promise<void> {
    await this.#write('take this instance from', ({ prefix }) => {
      const { index, record } = adminNames(prefix);
      return [
        ['del', record(id)],
        ['zrem', index, id],
      ];
    });
  }

  async instances(): Promise<readonly FoundInstance[]> {
    const answers = await this.#ask('list instances of', [], instancesAt);
    const latest = new Map<string, FoundInstance>();
    for (const instance of answers.flat()) {
      const known = latest.get(instance.id);
      if (known === undefined || instance.seenMsAgo < known.seenMsAgo)
        latest.set(instance.id, instance);
    }
    return [...latest.values()].sort((a, b) => b.startedAtMs - a.startedAtMs);
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    const failures: NodeFailure[] = [];
    let answered = 0;
    for (const node of this.#nodes) {
      try {
        yield* keysAt(node, prefix);
        answered += 1;
      } catch (error) {
        failures.push(...failuresIn(error));
      }
    }
    if (answered < this.#quorum)
      throw new LockStoreUnavailableError({ operation: 'list', keys: [], nodes: failures });
  }

  async look(keys: readonly string[]): Promise<readonly FoundKey[]> {
    const answers = await this.#ask('inspect', keys, (node) =>
      Promise.all(keys.map((key) => lookAt(node, key))),
    );
    return keys.flatMap((key, index) => {
      const found = answers.flatMap((each) => each[index] ?? []);
      return this.#merged(key, found) ?? [];
    });
  }

  async tell(address: string, text: string): Promise<void> {
    const addresses = JSON.parse(address) as readonly string[];
    await this.#ask('send a message by', [], async ({ connection, options }, index) => {
      const [kind, channel = ''] = addresses[index]?.split(' ') ?? [];
      if (kind === undefined) return;
      await connection.look(options.nodeTimeoutMs, ({ client }) =>
        client.command(kind === 'sharded' ? 'spublish' : 'publish', channel, text),
      );
    });
  }

  async arrive(key: string): Promise<number> {
    const [number = 0] = await this.#ask('replace the holder at', [key], (node) => {
      const { newest } = node.names(key);
      const arriving: Command = ['eval', ARRIVE, 1, newest, NEWEST_MS];
      return ask(node, [arriving], ([count]) => countIn(count), WRITES);
    });
    return number;
  }

  async forgetOnce(
    key: string,
    { state, attempts }: Pick<FoundOnce, 'state' | 'attempts'>,
  ): Promise<boolean> {
    const answers = await this.#ask('forget', [key], (node) => {
      const forget: Command = ['eval', FORGET, 1, node.names(key).once, state, attempts];
      return ask(node, [forget], ([count]) => numberIn(count) > 0);
    });
    return answers.includes(true);
  }

  async note(entry: string): Promise<void> {
    await this.#write('write to the audit log of', ({ prefix }) => [
      ['xadd', adminNames(prefix).audit, 'maxlen', '~', MOST_NOTES, '*', 'entry', entry],
    ]);
  }

  async notes(count: number): Promise<readonly string[]> {
    const answers = await this.#ask('read the audit log of', [], (node) => {
      const { audit } = adminNames(node.prefix);
      return ask(node, [['xrevrange', audit, '+', '-', 'count', count]], ([found]) =>
        ((found ?? []) as readonly (readonly [string, string[]])[]).map(([id, fields]) => ({
          atMs: Number.parseInt(id, 10),
          text: fields[1] ?? '',
        })),
      );
    });
    // A server that once had a clock ahead numbers its notes ahead for as long, so the earliest of several ids counts.
    const earliest = new Map<string, number>();
    for (const { atMs, text } of answers.flat())
      earliest.set(text, Math.min(atMs, earliest.get(text) ?? Infinity));
    return [...earliest].sort(([, a], [, b]) => b - a).map(([text]) => text);
  }

  async #write(operation: string, commands: (node: Server) => readonly Command[]): Promise<void> {
    await this.#ask(operation, [], (node) => ask(node, commands(node), (values) => values, WRITES));
  }

  /**
   * What all of them say; or, soon after enough have answered, what there is by then: one silent node delays no operator.
   *
   * @throws LockStoreUnavailableError when too few answer
   */
  async #ask<T>(
    operation: string,
    keys: readonly string[],
    look: (node: Server, index: number) => Promise<T>,
  ): Promise<readonly T[]> {
    const answers: T[] = [];
    const failures: NodeFailure[] = [];
    await new Promise<void>((resolve, reject) => {
      let missing = this.#nodes.length;
      let cancel: CancelTimer | undefined;
      const settled = ({ runtime }: Server): void => {
        missing -= 1;
        if (missing > 0 && answers.length >= this.#quorum)
          cancel ??= runtime.setTimer(resolve, LATECOMERS_MS);
        if (missing > 0) return;
        cancel?.();
        resolve();
      };
      this.#nodes.forEach((node, index) => {
        const looking = look(node, index).then(
          (answer) => answers.push(answer),
          (error: unknown) => failures.push(...failuresIn(error)),
        );
        looking.then(() => {
          settled(node);
        }, reject);
      });
    });
    if (answers.length >= this.#quorum) return [...answers];
    throw new LockStoreUnavailableError({ operation, keys, nodes: failures });
  }
}

async function instancesAt(node: Server): Promise<readonly FoundInstance[]> {
  const { index, record } = adminNames(node.prefix);
  const newest: Command = ['zrevrange', index, 0, MOST_INSTANCES - 1];
  const ids = await ask(node, [newest], ([list]) => textsIn(list));
  const commands = ids.flatMap((id): Command[] => [
    ['get', record(id)],
    ['pttl', record(id)],
  ]);
  return ask(node, commands, (values) =>
    ids.flatMap((id, i) => instanceIn(id, values[2 * i], numberIn(values[2 * i + 1])) ?? []),
  );
}

/** Names of keys that begin with a prefix, some at a time. SCAN: the server serves others meanwhile. */
async function* keysAt(
  { connection, prefix, options }: Server,
  wanted: string,
): AsyncGenerator<readonly string[]> {
  const keyOf = keyIn(prefix);
  const pattern = `*${(prefix + wanted).replace(/[*?[\]\\^]/g, '\\$&')}*`;
  // A Cluster's masters are known when it is reachable.
  const there = await connection.look(options.nodeTimeoutMs, () => Promise.resolve());
  if (there.status === 'unavailable') throw new Outage(there);
  const masters = connection.client.masters();
  for (const server of masters.length > 0 ? masters : [connection.client]) {
    let cursor = '0';
    do {
      const at = cursor;
      const reply = await connection.look(options.nodeTimeoutMs, () =>
        server.command('scan', at, 'match', pattern, 'count', 1_000),
      );
      if (reply.status === 'unavailable') throw new Outage(reply);
      const [next, names] = listIn(reply.value);
      if (typeof next !== 'string') throw new Outage(connection.malformed(reply.value));
      cursor = next;
      const keys = textsIn(names).flatMap((name) => keyOf(name) ?? []);
      yield keys.filter((key) => key.startsWith(wanted));
    } while (cursor !== '0');
  }
}

function lookAt(node: Server, key: string): Promise<FoundKey> {
  const { main, fence, queue, holders, limit, once, newest } = node.names(key);
  return ask(
    node,
    [
      ['get', main],
      ['pttl', main],
      ['get', fence],
      ['zrange', queue, 0, PLACES - 1, 'withscores'],
      ['zrange', holders, 0, -1, 'withscores'],
      ['pttl', holders],
      ['hmget', once, 'state', 'attempt', 'text'],
      ['pttl', once],
      ['get', limit],
      // Read after the holder: a caller that sees a newer one as the holder sees its number, too.
      ['get', newest],
    ],
    ([holder, leftMs, token, places, tokens, togetherMs, marks, markedMs, given, last]) => {
      if (typeof leftMs !== 'number') return undefined;
      const fencingToken = countIn(token);
      const sinceMs = momentIn(fencingToken);
      const together = typeof holder !== 'string' || holder.startsWith(`${MARK}:`);
      return {
        key,
        holders: together
          ? holdersIn(pairsIn(tokens), numberIn(togetherMs))
          : [{ token: holder, remainingMs: endless(leftMs), sinceMs }],
        fencingToken,
        line: pairsIn(places).flatMap(([member, ticket]) => placeIn(member, ticket)),
        once: onceIn(listIn(marks), numberIn(markedMs)),
        limit: countIn(given),
        newest: countIn(last),
      };
    },
  );
}

/**
 * Asks for several things at once.
 *
 * @param read returns `undefined` for values that the commands never return
 */
async function ask<T>(
  { connection, options }: Server,
  commands: readonly Command[],
  read: (values: readonly unknown[]) => T | undefined,
  { passes, whileDown }: typeof READS | typeof WRITES = READS,
): Promise<T> {
  const reply = await connection.ask(
    options.nodeTimeoutMs,
    ({ client }) => (commands.length === 0 ? Promise.resolve([]) : client.pipeline(commands)),
    whileDown,
  );
  if (reply.status === 'unavailable') throw new Outage(reply);
  const results = reply.value as readonly CommandResult[];
  const problems = results.flatMap(([problem]) => problem ?? []);
  const serious = problems.find(({ message }) => !passes.test(message));
  if (serious !== undefined) throw new Outage(connection.failed(serious));
  const values = results.map(([, value]) => value ?? undefined);
  const value = read(values);
  if (value === undefined) throw new Outage(connection.malformed(values));
  return value;
}
