import type { Unavailable } from '../../lock-store.js';
import type { FoundHolder, FoundInstance, FoundKey, InstanceRecord } from '../../admin-store.js';
import { MARK } from '../../owner-token.js';
import type { WhileDown } from '../client/readiness.js';
import type { Command, CommandResult } from '../client/redis-client.js';
import { adminNames, keyIn } from '../scripts/key-names.js';
import { countIn, instanceIn, momentIn, onceIn } from './admin-replies.js';
import type { Server } from './server.js';

/** What was found, or why nothing was. */
export type Looked<T> = { readonly status: 'answered'; readonly value: T } | Unavailable;

/** How commands are sent. */
interface Manner {
  /** Errors that count as no value. */
  readonly passes: RegExp;
  readonly whileDown: WhileDown;
}

/** A key of another type is no lock. After any other error nothing is known: a right may be missing. */
const READS: Manner = { passes: /^WRONGTYPE\b/, whileDown: 'waits' };

/** Nothing was written when one of the commands was refused. */
const WRITES: Manner = { passes: /^$/, whileDown: 'fails' };

const PLACES = 100;
const MOST_INSTANCES = 1_000;
const MOST_NOTES = 1_000;

/** What one node tells operators. With plain commands: nothing of it is worth a script, and nothing of it decides on a lock. */
export class NodeAdmin {
  readonly #server: Server;
  readonly #names: ReturnType<typeof adminNames>;

  constructor(server: Server) {
    this.#server = server;
    this.#names = adminNames(server.prefix);
  }

  report(record: InstanceRecord, lifeMs: number): Promise<Looked<unknown>> {
    const { index, record: nameOf } = this.#names;
    const nowMs = Math.round(this.#server.runtime.now().wallMs);
    return this.#write([
      ['set', nameOf(record.id), JSON.stringify({ ...record, lifeMs }), 'px', lifeMs],
      ['zadd', index, nowMs, record.id],
      ['zremrangebyscore', index, '-inf', nowMs - 2 * lifeMs],
      ['pexpire', index, 2 * lifeMs],
    ]);
  }

  retract(id: string): Promise<Looked<unknown>> {
    const { index, record } = this.#names;
    return this.#write([
      ['del', record(id)],
      ['zrem', index, id],
    ]);
  }

  async instances(): Promise<Looked<readonly FoundInstance[]>> {
    const { index, record } = this.#names;
    const newest: Command = ['zrevrange', index, 0, MOST_INSTANCES - 1];
    const ids = await this.#ask([newest], ([list]) => textsIn(list));
    if (ids.status === 'unavailable') return ids;
    const commands = ids.value.flatMap((id): Command[] => [
      ['get', record(id)],
      ['pttl', record(id)],
    ]);
    return this.#ask(commands, (values) =>
      ids.value.flatMap(
        (id, i) => instanceIn(id, values[2 * i], numberIn(values[2 * i + 1])) ?? [],
      ),
    );
  }

  /** Names of keys that begin with a prefix, some at a time. SCAN: the server serves others meanwhile. */
  async *keys(wanted: string): AsyncGenerator<Looked<readonly string[]>> {
    const { connection, prefix, options } = this.#server;
    const keyOf = keyIn(prefix);
    const pattern = `*${(prefix + wanted).replace(/[*?[\]\\^]/g, '\\$&')}*`;
    // A Cluster's masters are known when it is reachable.
    const there = await connection.look(options.nodeTimeoutMs, () => Promise.resolve());
    if (there.status === 'unavailable') {
      yield there;
      return;
    }
    const masters = connection.client.masters();
    for (const server of masters.length > 0 ? masters : [connection.client]) {
      let cursor = '0';
      do {
        const at = cursor;
        const reply = await connection.look(options.nodeTimeoutMs, () =>
          server.command('scan', at, 'match', pattern, 'count', 1_000),
        );
        if (reply.status === 'unavailable') {
          yield reply;
          return;
        }
        const [next, names] = reply.value as [string, readonly string[]];
        cursor = next;
        const keys = names.flatMap((name) => keyOf(name) ?? []);
        yield { status: 'answered', value: keys.filter((key) => key.startsWith(wanted)) };
      } while (cursor !== '0');
    }
  }

  async look(keys: readonly string[]): Promise<Looked<readonly FoundKey[]>> {
    const looked = await Promise.all(keys.map((key) => this.#lookAt(key)));
    const found: FoundKey[] = [];
    for (const each of looked) {
      if (each.status === 'unavailable') return each;
      found.push(each.value);
    }
    return { status: 'answered', value: found };
  }

  async tell(address: string, text: string): Promise<void> {
    const { connection, options } = this.#server;
    const [kind, channel = ''] = address.split(' ');
    await connection.look(options.nodeTimeoutMs, ({ client }) =>
      client.command(kind === 'sharded' ? 'spublish' : 'publish', channel, text),
    );
  }

  forgetOnce(key: string): Promise<Looked<boolean>> {
    const { once } = this.#server.names(key);
    return this.#ask([['del', once]], ([count]) => numberIn(count) > 0);
  }

  note(entry: string): Promise<Looked<unknown>> {
    return this.#write([
      ['xadd', this.#names.audit, 'maxlen', '~', MOST_NOTES, '*', 'entry', entry],
    ]);
  }

  notes(count: number): Promise<Looked<readonly string[]>> {
    return this.#ask([['xrevrange', this.#names.audit, '+', '-', 'count', count]], ([found]) => {
      const entries = (found ?? []) as readonly (readonly [string, string[]])[];
      return entries.map(([, fields]) => fields[1] ?? '');
    });
  }

  #lookAt(key: string): Promise<Looked<FoundKey>> {
    const { main, fence, queue, holders, once } = this.#server.names(key);
    return this.#ask(
      [
        ['get', main],
        ['pttl', main],
        ['get', fence],
        ['zrange', queue, 0, PLACES - 1, 'withscores'],
        ['zrange', holders, 0, -1, 'withscores'],
        ['pttl', holders],
        ['hmget', once, 'state', 'attempt', 'text'],
        ['pttl', once],
        ['get', limitNameOf(holders)],
      ],
      ([holder, leftMs, token, places, tokens, togetherMs, marks, markedMs, limit]) => {
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
          once: onceIn(textsIn(marks), numberIn(markedMs)),
          limit: countIn(limit),
        };
      },
    );
  }

  #write(commands: readonly Command[]): Promise<Looked<readonly unknown[]>> {
    return this.#ask(commands, (values) => values, WRITES);
  }

  /**
   * Asks for several things at once.
   *
   * @param read returns `undefined` for values that the commands never return
   */
  async #ask<T>(
    commands: readonly Command[],
    read: (values: readonly unknown[]) => T | undefined,
    { passes, whileDown }: Manner = READS,
  ): Promise<Looked<T>> {
    const { connection, options } = this.#server;
    const reply = await connection.ask(
      options.nodeTimeoutMs,
      ({ client }) => (commands.length === 0 ? Promise.resolve([]) : client.pipeline(commands)),
      whileDown,
    );
    if (reply.status === 'unavailable') return reply;
    const results = reply.value as readonly CommandResult[];
    const problems = results.flatMap(([problem]) => problem ?? []);
    const serious = problems.find(({ message }) => !passes.test(message));
    if (serious !== undefined) return connection.failed(serious);
    const values = results.map(([, value]) => value ?? undefined);
    const value = read(values);
    return value === undefined ? connection.malformed(values) : { status: 'answered', value };
  }
}

const numberIn = (value: unknown): number => Number(value ?? -2);

const endless = (pttl: number): number => (pttl < 0 ? Infinity : pttl);

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? (value as string[]) : [];

function pairsIn(value: unknown): readonly (readonly [string, number])[] {
  const flat = textsIn(value);
  return flat.flatMap((member, i) => (i % 2 === 0 ? [[member, Number(flat[i + 1])] as const] : []));
}

/** As `holders.ts` names it. */
const limitNameOf = (holders: string): string => `${holders}:limit`;

/** The places of a holder that takes several, as `holders.ts` writes it. */
const SHADOW = '+';

/** The longest of them ends when the set does; the others by so much earlier. */
function holdersIn(
  tokens: readonly (readonly [string, number])[],
  longestMs: number,
): readonly FoundHolder[] {
  const last = tokens.at(-1)?.[1] ?? 0;
  return tokens
    .filter(([token]) => !token.startsWith(SHADOW))
    .map(([token, end]) => ({ token, remainingMs: Math.round(longestMs - (last - end) / 1_000) }))
    .filter(({ remainingMs }) => remainingMs > 0);
}

/** As `places.ts` writes it. */
function placeIn(member: string, ticket: number): FoundKey['line'] {
  const [, token, channel] = /^(\S+) \d+ ([^\n]+)/.exec(member) ?? [];
  if (token === undefined || channel === undefined) return [];
  return [{ token, channel, sinceMs: momentIn(ticket) }];
}
