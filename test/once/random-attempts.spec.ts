import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Unavailable } from '../../lib/store/lock-store.js';
import type {
  BeginOutcome,
  FinishOutcome,
  OnceReference,
  OnceStore,
} from '../../lib/store/once-store.js';
import { onceAt } from '../../lib/store/redis/node/redis-store.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import type { Verb } from '../../lib/store/redis/scripts/script.js';
import { Random } from '../techniques/faults/random.js';
import { asked } from '../support/encoded.js';
import { RedisServer } from '../support/redis-server.js';
import { share } from '../support/soak.js';

const SEEDS = share(50, 1_000);
const STEPS = 40;

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const unavailable = { status: 'unavailable', nodes: [], transient: true } as const;

interface Attempt extends OnceReference {
  readonly attempt: number;
  readonly end: 'done' | 'failed';
  /** Of work that is done; else its error. */
  readonly text: string;
}

/**
 * One job on one server: the real script, and a network that loses requests and answers and delivers some of them late. The holders of
 * the lock follow each other; each may die, or come back when it no longer holds it.
 */
class Job {
  readonly #random: Random;
  readonly #id: string;
  readonly #late: (() => Promise<unknown>)[] = [];
  readonly #store: OnceStore;
  readonly #working: Attempt[] = [];
  readonly #log: string[] = [];
  /** Values of attempts that a later one has followed before anybody knew of them. */
  readonly #tooLate = new Set<string>();
  #fencingToken = 0;
  #sent = 0;
  #value: string | undefined;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#id = `job ${String(seed)}`;
    this.#store = onceAt({ ask: (verb, request) => this.#send(verb, request) });
  }

  get story(): string {
    return `${this.#id}\n${this.#log.join('\n')}`;
  }

  async step(): Promise<void> {
    const chance = this.#random.fraction();
    if (chance < 0.3) await this.#begin();
    else if (chance < 0.7) await this.#end();
    else if (chance < 0.85) await this.#look();
    else await this.#late.splice(0, 1)[0]?.();
    // What nobody waited for, and what follows from it: so that a seed always tells the same story.
    do await nextTurn();
    while (this.#sent > 0);
  }

  #send<Request, Answer>(
    verb: Verb<Request, Answer>,
    request: NoInfer<Request>,
  ): Promise<Answer | Unavailable> {
    this.#sent += 1;
    return this.#deliver(verb, request).finally(() => {
      this.#sent -= 1;
    });
  }

  async #deliver<Request, Answer>(
    verb: Verb<Request, Answer>,
    request: Request,
  ): Promise<Answer | Unavailable> {
    const names = { ...keyNames('lock:')('job'), main: this.#id, once: `${this.#id} once` };
    const { call, answer } = asked(verb, { ...request, names: [names] });
    const run = (): Promise<unknown> => redis.eval(verb.lua, ...call);
    const chance = this.#random.fraction();
    if (chance < 0.15) return unavailable;
    if (chance < 0.25) {
      this.#late.push(run);
      return unavailable;
    }
    const reply = await run();
    if (chance < 0.35) return unavailable;
    const outcome = answer(reply);
    if (outcome === undefined) throw new Error(`malformed: ${String(reply)}`);
    return outcome;
  }

  /** The next holder of the lock begins. */
  async #begin(): Promise<void> {
    this.#fencingToken += 1;
    const name = `attempt ${String(this.#fencingToken)}`;
    const reference = { key: 'job', token: name, owner: name, fencingToken: this.#fencingToken };
    await redis.set(this.#id, name);
    const request = { ...reference, attempts: 1_000, lifeMs: 60_000, keepMs: 60_000 };
    let outcome = await this.#store.begin(request);
    if (outcome.status === 'unavailable') outcome = await this.#store.begin(request);
    this.#note(`${name} begins`, outcome);
    if (outcome.status === 'done') this.#tell(outcome.value);
    if (outcome.status === 'unavailable')
      await this.#store.finish({ ...reference, attempt: 0, end: 'returned', lifeMs: 60_000 });
    if (outcome.status !== 'begun') return;
    expect([this.#value, this.story]).toEqual([undefined, this.story]);
    for (const { text } of this.#working) this.#tooLate.add(text);
    const end = this.#random.chance(0.3) ? 'failed' : 'done';
    this.#working.push({ ...reference, attempt: outcome.attempt, end, text: `of ${name}` });
  }

  /** One that has begun, however long ago, ends; when there is no answer, now and then again. */
  async #end(): Promise<void> {
    if (this.#working.length === 0) return;
    const attempt = this.#random.pick(this.#working);
    const outcome = await this.#store.finish({ ...attempt, lifeMs: 60_000 });
    this.#note(`${attempt.owner} ${attempt.end}`, outcome);
    if (outcome.status === 'accepted' && attempt.end === 'done') this.#tell(attempt.text);
    if (outcome.status !== 'unavailable') this.#working.splice(this.#working.indexOf(attempt), 1);
  }

  /** Somebody who does not hold the lock asks. */
  async #look(): Promise<void> {
    const nobody = { key: 'job', token: 'nobody', owner: 'nobody', fencingToken: 0 };
    const outcome = await this.#store.begin({ ...nobody, attempts: 1, lifeMs: 1, keepMs: 1 });
    this.#note('somebody asks', outcome);
    if (outcome.status === 'done') this.#tell(outcome.value);
  }

  #tell(value: string | undefined): void {
    this.#value ??= value;
    expect([value, this.story]).toEqual([this.#value, this.story]);
    expect([this.#tooLate.has(value ?? ''), this.story]).toEqual([false, this.story]);
  }

  #note(what: string, outcome: BeginOutcome | FinishOutcome): void {
    this.#log.push(`${what}: ${JSON.stringify(outcome)}`);
  }
}

it(
  'whatever the network does, a job has one value, nobody works after that is known, and none is of an attempt that another has followed',
  async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const job = new Job(seed);
      for (let step = 0; step < STEPS; step += 1) await job.step();
    }
  },
  share(60_000, 300_000),
);
