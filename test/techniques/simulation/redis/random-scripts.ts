import { MARK } from '../../../../lib/store/owner-token.js';
import type { Random } from '../../faults/random.js';
import { epochName } from '../../../../lib/store/redis/scripts/key-names.js';
import { tokenOf } from '../../../../lib/store/redis/scripts/script.js';
import type { Share } from '../../../../lib/store/redis/scripts/plain.js';
import type { Script, ScriptCall } from '../../../../lib/store/redis/scripts/script.js';
import type { ModelCommand } from './model.js';
import { asked, encoded, shared } from '../../../support/encoded.js';
import { RandomAttempts, type Attempt } from './random-attempts.js';
import { SCRIPTS } from './steps.js';

/** Runs the library's scripts as its callers do, and as callers that are late, confused or dead do. */

type Ask = (script: Script, call: ScriptCall) => unknown;

const TTLS_MS = [1, 20, 300, 5_000, 30_000];
const KEEPS_MS = [0, 100, 600_000];
const ENDS = ['failed', 'final', 'returned'] as const;
const MAX_TTL_MS = 30_000;

export class RandomScripts {
  readonly attempts: RandomAttempts;
  readonly #random: Random;
  readonly #epoch: string | undefined;
  /** How much of it is about work that is to be done once. */
  readonly #onceShare: number;

  constructor(random: Random) {
    this.#random = random;
    this.attempts = new RandomAttempts(random.fork(1));
    this.#epoch = random.chance(0.3) ? epochName(this.attempts.prefix) : undefined;
    this.#onceShare = random.pick([0.03, 0.03, 0.5]);
  }

  /** All keys that the scripts use. */
  get keys(): readonly string[] {
    const { keys } = this.attempts;
    return this.#epoch === undefined ? keys : [...keys, this.#epoch];
  }

  /**
   * @param run runs the command, and gives the answer: what follows depends on it
   */
  step(nowUs: number, run: (command: ModelCommand) => unknown): void {
    const random = this.#random;
    const chosen = random.fraction();
    const ask: Ask = (script, call) => {
      const isBySha = random.chance(0.98); // texts are long
      return run(isBySha ? ['EVALSHA', script.sha, ...call] : ['EVAL', script.lua, ...call]);
    };
    if (random.chance(this.#onceShare)) this.#once(ask);
    else if (chosen < 0.16) this.#take(nowUs, ask);
    else if (chosen < 0.48) this.#acquire(nowUs, ask);
    else if (chosen < 0.56) this.#give(ask);
    else if (chosen < 0.72) this.#release(ask);
    else if (chosen < 0.88) this.#extend(nowUs, ask);
    else if (chosen < 0.93) this.#raiseFence(nowUs, ask);
    else if (chosen < 0.95) this.#quarantine(ask);
    else if (chosen < 0.97) this.#setLimit(ask);
    else run(this.#byOthers());
  }

  #acquire(nowUs: number, ask: Ask): void {
    const { attempt, call, answer } = this.#acquireCall(nowUs);
    const vote = answer(ask(SCRIPTS.acquire, call));
    if (vote?.status === 'granted') this.#granted(attempt, vote.fencingToken);
    if (vote?.status === 'held') attempt.ticket = vote.ticket;
  }

  #granted(attempt: Attempt, fencingToken: number): void {
    attempt.fencingToken = fencingToken;
    this.attempts.granted = attempt;
  }

  /** One request, or a few in one call, for the first key of each. */
  #take(nowUs: number, ask: Ask): void {
    const random = this.#random;
    const requests = Array.from({ length: this.#together() }, () => ({
      attempt: random.chance(0.3) ? this.attempts.any() : this.attempts.add(),
      ttlMs: random.pick(TTLS_MS),
      proposal: random.chance(0.5) ? 0 : nowUs + random.between(-1_000, 1_001_000),
    }));
    const terms = { fenceKeepMs: random.pick(KEEPS_MS) };
    const clocks = this.#share(
      ask,
      SCRIPTS.take,
      requests.map(({ attempt: { names, token }, ttlMs, proposal }) =>
        shared(SCRIPTS.take, { ...terms, names: names[0], token, ttlMs, proposal }),
      ),
    );
    requests.forEach(({ attempt, proposal }, index) => {
      const clockUs = Number(clocks[index]);
      if (clockUs > 0) this.#granted(attempt, tokenOf(clockUs, proposal));
    });
  }

  #give(ask: Ask): void {
    const holders = Array.from({ length: this.#together() }, () => this.attempts.holder());
    this.#share(
      ask,
      SCRIPTS.give,
      holders.map(({ names, token }) => shared(SCRIPTS.give, { names: names[0], token })),
    );
  }

  #together(): number {
    return this.#random.chance(0.6) ? 1 : this.#random.between(2, 4);
  }

  /** Answers each of them. */
  #share(ask: Ask, script: Script, shares: readonly Share[]): readonly unknown[] {
    const keys = shares.flatMap((share) => share.keys);
    const reply = ask(script, [keys.length, ...keys, ...shares.flatMap(({ args }) => args)]);
    return Array.isArray(reply) ? (reply as unknown[]) : [reply];
  }

  #acquireCall(nowUs: number) {
    const random = this.#random;
    const attempt = random.chance(0.5) ? this.attempts.any() : this.attempts.add();
    const others = this.attempts.fencingTokens;
    const request = asked(SCRIPTS.acquire, {
      names: attempt.names,
      epoch: this.#epoch,
      token: attempt.token,
      ttlMs: random.pick(TTLS_MS),
      fenceKeepMs: random.pick(KEEPS_MS),
      lineMode: this.attempts.lineMode(),
      member: random.chance(0.75) ? attempt.member : '',
      ticket: random.chance(0.9) ? attempt.ticket : nowUs - random.between(0, 5_000_000),
      proposal: random.chance(0.7) ? 0 : nowUs + random.between(-1_000, 1_001_000),
      maxTtlMs: this.#epoch === undefined ? undefined : MAX_TTL_MS,
      joins: random.chance(0.85) ? undefined : random.pick([...others, 5]),
      keeps: random.chance(0.5)
        ? undefined
        : { ttlMs: 1_100, limitMs: random.pick([0, 100, 5_000]), before: random.between(0, 2) },
    });
    return { attempt, ...request };
  }

  #release(ask: Ask): void {
    const random = this.#random;
    const attempt = this.attempts.holder();
    const { fencingToken = 7, names } = attempt;
    const lineMode = this.attempts.lineMode();
    const isUsual = random.chance(0.5);
    const chosen = {
      names: isUsual ? names : this.attempts.someNames(),
      token: random.chance(0.9) ? attempt.token : '',
      lineMode,
      lastToken: random.chance(0.8) ? fencingToken + random.pick([0, 0, 3, 300]) : undefined,
      fenceKeepMs: random.chance(0.6) ? undefined : random.pick(KEEPS_MS),
      member: random.chance(0.5) ? '' : this.attempts.rememberedPlace(attempt),
      wakes: isUsual ? undefined : random.pick(['nobody', undefined] as const),
      keepMs: random.chance(0.8) ? 0 : random.pick([0.5, 20, 2_000]),
    } as const;
    const { fenceKeepMs = 0 } = chosen;
    const maxTtlMs = chosen.fenceKeepMs === undefined ? undefined : MAX_TTL_MS;
    ask(SCRIPTS.release, encoded(SCRIPTS.release, { ...chosen, maxTtlMs, fenceKeepMs }));
  }

  #extend(nowUs: number, ask: Ask): void {
    const random = this.#random;
    const lineMode = this.attempts.lineMode();
    const chosen = Array.from({ length: random.between(1, 3) }, () => this.attempts.holder());
    const renewed = chosen.flatMap((attempt) => attempt.names.map((names) => ({ attempt, names })));
    const { call, answer } = asked(SCRIPTS.extend, {
      names: renewed.map(({ names }) => names),
      renewals: renewed.map(({ attempt }) => ({
        token: attempt.token,
        ttlMs: random.pick(TTLS_MS),
        fencingToken: (attempt.fencingToken ?? nowUs) + random.pick([0, 0, 1, 300]),
        sureUntilUs: nowUs + random.pick([1_000_000, 5_000, 0, -1]),
        expectedFence: random.chance(0.7) ? attempt.goneFence : undefined,
      })),
      epoch: this.#epoch,
      fenceKeepMs: random.pick(KEEPS_MS),
      maxTtlMs: this.#epoch === undefined ? undefined : MAX_TTL_MS,
      lineMode,
    });
    answer(ask(SCRIPTS.extend, call))?.answers.forEach((key, index) => {
      const attempt = renewed[index]?.attempt;
      if (key.status === 'lost' && key.fence !== undefined && attempt !== undefined)
        attempt.goneFence = key.fence;
    });
  }

  #raiseFence(nowUs: number, ask: Ask): void {
    const random = this.#random;
    const { names, token, fencingToken = nowUs } = this.attempts.holder();
    const call = encoded(SCRIPTS.raiseFence, {
      names,
      token,
      fencingToken: fencingToken + random.pick([0, 1, -1, 5_000, 2_000_000]),
      ttlMs: random.pick(TTLS_MS),
      fenceKeepMs: random.pick(KEEPS_MS),
      lineMode: this.attempts.lineMode(),
    });
    ask(SCRIPTS.raiseFence, call);
  }

  #once(ask: Ask): void {
    const random = this.#random;
    const { names, token } = this.attempts.holder();
    const reference = {
      names: [names[0]],
      token,
      owner: random.pick(['owner', 'other']),
      lifeMs: random.pick([5, 9_000, 60_000]),
    };
    const what = random.pick(['begin', 'begin', 'keep', 'done', ...ENDS] as const);
    const call =
      what === 'begin'
        ? encoded(SCRIPTS.begin, {
            ...reference,
            attempts: random.between(1, 2),
            keepMs: random.pick([10, 9_000]),
          })
        : encoded(SCRIPTS.end, {
            ...reference,
            what,
            attempt: random.between(1, 3),
            text: random.pick(['', '"é"', 'x']),
          });
    ask(SCRIPTS.begin, call);
  }

  /** What other software does to our keys. */
  #byOthers(): ModelCommand {
    const random = this.#random;
    const { main, fence, queue, holders } = random.pick(this.attempts.names);
    return random.pick<ModelCommand>([
      ['DEL', main],
      ['DEL', main, holders],
      ['DEL', random.pick([fence, queue, holders])],
      ['SET', main, 'foreign', 'PX', random.pick(TTLS_MS)],
      ['SET', main, `${MARK}:shared`],
      ['PEXPIRE', random.pick([main, fence, holders]), random.pick(TTLS_MS)],
      ['ZADD', main, 1, 'no lock'],
    ]);
  }

  #setLimit(ask: Ask): void {
    const call = encoded(SCRIPTS.setLimit, {
      names: [this.attempts.someNames()[0]],
      limit: this.#random.pick([undefined, 1, 2, 4]),
      lineMode: this.attempts.lineMode(),
    });
    ask(SCRIPTS.setLimit, call);
  }

  #quarantine(ask: Ask): void {
    const call = encoded(SCRIPTS.quarantine, {
      epoch: this.#epoch ?? epochName('lock:'),
      maxTtlMs: MAX_TTL_MS,
      isNew: this.#random.pick([true, false]),
    });
    ask(SCRIPTS.quarantine, call);
  }
}
