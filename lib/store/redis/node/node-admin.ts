import type { Unavailable } from '../../lock-store.js';
import type { FoundHolder, FoundInstance, FoundKey, InstanceRecord } from '../../admin-store.js';
import { MARK } from '../../owner-token.js';
import type { Command, CommandResult } from '../client/redis-client.js';
import { adminNames, keyIn } from '../scripts/admin-names.js';
import { countIn, instanceIn, momentIn, onceIn } from './admin-replies.js';
import type { Server } from './server.js';

/** What was found, or why nothing was. */
export type Looked<T> = { readonly status: 'answered'; readonly value: T } | Unavailable;

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

  /** Where messages reach this process as soon as it hears them. */
  get address(): string {
    return this.#server.inbox.address;
  }

  get isHearing(): boolean {
    return this.#server.inbox.isSubscribed;
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
    const ids = await this.#ask([['zrevrange', index, 0, MOST_INSTANCES - 1]]);
    if (ids.status === 'unavailable') return ids;
    const texts = textsIn(ids.value[0]);
    const commands = texts.flatMap((id): Command[] => [
      ['get', record(id)],
      ['pttl', record(id)],
    ]);
    const found = await this.#ask(commands);
    if (found.status === 'unavailable') return found;
    const instances: FoundInstance[] = [];
    for (let i = 0; i < found.value.length; i += 2) {
      const [id = '', leftMs] = [texts[i / 2], numberIn(found.value[i + 1])];
      const instance = instanceIn(id, valueOf(found.value[i]), leftMs);
      if (instance !== undefined) instances.push(instance);
    }
    return { status: 'answered', value: instances };
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

  async forgetOnce(key: string): Promise<Looked<boolean>> {
    const { once } = this.#server.names(key);
    const reply = await this.#write([['del', once]]);
    if (reply.status === 'unavailable') return reply;
    return { status: 'answered', value: numberIn(reply.value[0]) > 0 };
  }

  note(entry: string): Promise<Looked<unknown>> {
    return this.#write([
      ['xadd', this.#names.audit, 'maxlen', '~', MOST_NOTES, '*', 'entry', entry],
    ]);
  }

  async notes(count: number): Promise<Looked<readonly string[]>> {
    const reply = await this.#ask([['xrevrange', this.#names.audit, '+', '-', 'count', count]]);
    if (reply.status === 'unavailable') return reply;
    const entries = (valueOf(reply.value[0]) ?? []) as readonly (readonly [string, string[]])[];
    return { status: 'answered', value: entries.map(([, fields]) => fields[1] ?? '') };
  }

  async #lookAt(key: string): Promise<Looked<FoundKey>> {
    const { main, fence, queue, holders, once } = this.#server.names(key);
    const reply = await this.#ask([
      ['get', main],
      ['pttl', main],
      ['get', fence],
      ['zrange', queue, 0, PLACES - 1, 'withscores'],
      ['zrange', holders, 0, -1, 'withscores'],
      ['pttl', holders],
      ['hmget', once, 'state', 'attempt', 'text'],
      ['pttl', once],
      ['get', limitNameOf(holders)],
    ]);
    if (reply.status === 'unavailable') return reply;
    const [holder, leftMs, token, places, tokens, togetherMs, marks, markedMs, limit] = reply.value;
    const fencingToken = countIn(valueOf(token));
    const sinceMs = momentIn(fencingToken);
    const alone = valueOf(holder);
    const together = typeof alone !== 'string' || alone.startsWith(`${MARK}:`);
    return {
      status: 'answered',
      value: {
        key,
        holders: together
          ? holdersIn(pairsIn(tokens), numberIn(togetherMs))
          : [{ token: alone, remainingMs: endless(numberIn(leftMs)), sinceMs }],
        fencingToken,
        line: pairsIn(places).flatMap(([member, ticket]) => placeIn(member, ticket)),
        once: onceIn(textsIn(marks), numberIn(markedMs)),
        limit: countIn(valueOf(limit)),
      },
    };
  }

  /** A key of another type is no lock. After any other error nothing is known: a right may be missing. */
  async #ask(commands: readonly Command[]): Promise<Looked<readonly CommandResult[]>> {
    const reply = await this.#send(commands);
    return this.#checked(reply, (problem) => !/^WRONGTYPE\b/.test(problem.message));
  }

  #send(commands: readonly Command[]): Promise<Looked<readonly CommandResult[]>> {
    if (commands.length === 0) return Promise.resolve({ status: 'answered', value: [] });
    const { connection, options } = this.#server;
    return connection.look(options.nodeTimeoutMs, ({ client }) =>
      client.pipeline(commands),
    ) as Promise<Looked<readonly CommandResult[]>>;
  }

  /** Nothing was written when one of them was refused. */
  async #write(commands: readonly Command[]): Promise<Looked<readonly CommandResult[]>> {
    return this.#checked(await this.#send(commands), () => true);
  }

  #checked(
    reply: Looked<readonly CommandResult[]>,
    matters: (problem: Error) => boolean,
  ): Looked<readonly CommandResult[]> {
    if (reply.status === 'unavailable') return reply;
    const problems = reply.value.flatMap(([problem]) => problem ?? []);
    const serious = problems.find(matters);
    return serious === undefined ? reply : this.#server.connection.failed(serious);
  }
}

/** `undefined` of an error: a key of another type is no lock. */
const valueOf = (result: CommandResult | undefined): unknown => result?.[1] ?? undefined;

const numberIn = (result: CommandResult | undefined): number => Number(valueOf(result) ?? -2);

const endless = (pttl: number): number => (pttl < 0 ? Infinity : pttl);

function textsIn(result: CommandResult | undefined): readonly string[] {
  const value = valueOf(result);
  return Array.isArray(value) ? (value as string[]) : [];
}

function pairsIn(result: CommandResult | undefined): readonly (readonly [string, number])[] {
  const flat = textsIn(result);
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
