import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { MARK, newOwnerToken } from '../../lib/store/owner-token.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { setLimitScript } from '../../lib/store/redis/scripts/set-limit.js';
import type { Verb } from '../../lib/store/redis/scripts/script.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { asked } from '../support/encoded.js';
import { RedisModel } from '../techniques/simulation/redis/model.js';
import type { Wish } from './plain-semaphore.js';

/** A store, as the plain semaphore is asked. */
export interface SemaphoreStore {
  nowMs: number;
  ask(wish: Wish, waits: boolean): Promise<boolean>;
  renew(wish: Wish): Promise<boolean>;
  leave(wish: Wish): Promise<boolean>;
  setLimit(limit: number | undefined): Promise<void>;
  /** The tokens that hold the key, and those that wait, in order. */
  state(): Promise<{ readonly holders: readonly string[]; readonly line: readonly string[] }>;
}

const KEY = 'key';

export const tokenOf = ({ id, places, limit }: Pick<Wish, 'id' | 'places' | 'limit'>): string =>
  newOwnerToken({ ...systemRuntime, uuid: () => String(id) }, { mode: `limit:${limit}`, places });

export const idOf = (token: string): number => Number(/^\d+/.exec(token.slice(MARK.length))?.[0]);

export class MemorySemaphore implements SemaphoreStore {
  nowMs = 0;
  readonly #store = new MemoryLockStore({
    now: () => ({ monotonicMs: this.nowMs, wallMs: this.nowMs }),
    setTimer: () => () => undefined,
  });
  readonly #tickets = new Map<number, number>();

  async ask(wish: Wish, waits: boolean): Promise<boolean> {
    const { id, ttlMs } = wish;
    const token = tokenOf(wish);
    const line = waits ? { id: token, ttlMs, ticket: this.#tickets.get(id) } : undefined;
    const outcome = await this.#store.acquire({ keys: [KEY], token, ttlMs, line });
    if (outcome.status === 'held' && outcome.ticket !== undefined)
      this.#tickets.set(id, outcome.ticket);
    return outcome.status === 'granted';
  }

  async renew(wish: Wish): Promise<boolean> {
    const { ttlMs } = wish;
    const [outcome] = await this.#store.extend([{ keys: [KEY], token: tokenOf(wish), ttlMs }]);
    return outcome?.status === 'extended';
  }

  async leave(wish: Wish): Promise<boolean> {
    const lease = { keys: [KEY], token: tokenOf(wish) };
    const { holders } = await this.state();
    await this.#store.leave(lease);
    return holders.includes(lease.token);
  }

  async setLimit(limit: number | undefined): Promise<void> {
    await this.#store.setLimit(KEY, limit);
  }

  async state(): ReturnType<SemaphoreStore['state']> {
    const [found] = await this.#store.admin.look([KEY]);
    const { holders = [], line = [] } = found ?? {};
    return {
      holders: holders.map(({ token }) => token),
      line: line.map(({ token }) => token),
    };
  }
}

const NAMES = keyNames('lock:')(KEY);
/** Lines outlive every step. */
const KEEP_MS = 600_000;

const START_MS = 1_700_000_000_000;

/** The scripts, on a modelled server that is of the opinion that all who wait listen. */
export class ScriptedSemaphore implements SemaphoreStore {
  nowMs = 0;
  readonly #model = new RedisModel();
  readonly #tickets = new Map<number, number>();

  ask(wish: Wish, waits: boolean): Promise<boolean> {
    const { id, ttlMs } = wish;
    const member = waits ? memberOf(wish) : '';
    const reply = this.#ask(acquireScript, {
      ...{ names: [NAMES], token: tokenOf(wish), ttlMs, fenceKeepMs: KEEP_MS, member },
      ...{ ticket: this.#tickets.get(id), proposal: 0 },
    });
    if (reply?.status === 'held' && reply.ticket !== undefined) this.#tickets.set(id, reply.ticket);
    return Promise.resolve(reply?.status === 'granted');
  }

  renew(wish: Wish): Promise<boolean> {
    const lease = { token: tokenOf(wish), ttlMs: wish.ttlMs, fencingToken: 1 };
    const renewals = [{ ...lease, sureUntilUs: 0, expectedFence: undefined }];
    const reply = this.#ask(extendScript, { names: [NAMES], renewals, fenceKeepMs: KEEP_MS });
    return Promise.resolve(reply?.answers[0]?.status === 'extended');
  }

  leave(wish: Wish): Promise<boolean> {
    const reply = this.#ask(releaseScript, {
      ...{ names: [NAMES], token: tokenOf(wish), member: memberOf(wish) },
    });
    return Promise.resolve(reply?.status === 'released');
  }

  setLimit(limit: number | undefined): Promise<void> {
    this.#ask(setLimitScript, { names: [NAMES], limit });
    return Promise.resolve();
  }

  state(): ReturnType<SemaphoreStore['state']> {
    const { holders, queue } = NAMES;
    const live = ['ZRANGEBYSCORE', holders, `(${String(this.#nowUs)}`, '+inf'] as const;
    const places = this.#execute(['ZRANGE', queue, 0, -1]) as readonly string[];
    return Promise.resolve({
      holders: this.#execute(live) as readonly string[],
      line: places.map((place) => place.split(' ')[0] ?? ''),
    });
  }

  get #nowUs(): number {
    return (START_MS + this.nowMs) * 1_000;
  }

  #ask<Request, Answer>(
    verb: Verb<Request, Answer>,
    request: Parameters<typeof asked<Request, Answer>>[1],
  ): Answer | undefined {
    const { call, answer } = asked(verb, request);
    return answer(this.#execute(['EVAL', verb.lua, ...call]));
  }

  #execute(command: Parameters<RedisModel['execute']>[0]): unknown {
    return this.#model.execute(command, {
      nowUs: this.#nowUs,
      publish: () => 1,
      subscribers: () => 1,
      acknowledgedBy: () => 0,
    });
  }
}

const memberOf = (wish: Wish): string =>
  `${tokenOf(wish)} ${String(Math.min(wish.ttlMs, 1_000))} ear`;
