import type { Random } from '../../faults/random.js';
import { epochName, keyNames, type KeyNames } from '../../../lib/store/redis/scripts/key-names.js';
import type { LineMode } from '../../../lib/store/redis/scripts/line.js';
import type { Script, ScriptCall } from '../../../lib/store/redis/scripts/script.js';
import type { ModelCommand } from './model.js';
import { SCRIPTS } from './steps.js';

/** Runs the library's scripts as its callers do, and as callers that are late, confused or dead do. */

/** Somebody who wants keys. */
interface Attempt {
  readonly token: string;
  readonly names: readonly [KeyNames, ...KeyNames[]];
  readonly member: string;
  ticket: number | undefined;
  fencingToken: number | undefined;
  /** What a renewal found where a key was gone. */
  goneFence: number | undefined;
}

type Named = (typeof SCRIPTS)[keyof typeof SCRIPTS];

const TTLS_MS = [1, 20, 300, 5_000, 30_000];
const KEEPS_MS = [0, 100, 600_000];
const MODES = ['', '', '', ':shared', ':shared', ':limit:1', ':limit:2'];
const PREFIXES = ['lock:', '{app}:', 'ü:'];
const MAX_TTL_MS = 30_000;

export class RandomScripts {
  readonly channels: readonly string[];
  readonly #random: Random;
  readonly #lineMode: LineMode;
  readonly #names: readonly KeyNames[];
  readonly #epoch: string | undefined;
  readonly #turns: number;
  readonly #attempts: Attempt[] = [];
  #count = 0;

  constructor(random: Random) {
    this.#random = random;
    const prefix = random.pick(PREFIXES);
    this.#lineMode = random.pick(['standalone', 'standalone', 'cluster', 'quorum']);
    this.#names = ['a', 'b', 'c', 'é'].slice(0, random.between(1, 4)).map(keyNames(prefix));
    this.#epoch = random.chance(0.3) ? epochName(prefix) : undefined;
    this.#turns = random.pick([1, 1_024]);
    const isSharded = this.#lineMode === 'cluster' && random.chance(0.7);
    this.channels = ['x', 'y', 'z'].map((name) => `holdfast:${name}${isSharded ? ':{tag}' : ''}`);
  }

  /** All keys that the scripts use. */
  get keys(): readonly string[] {
    const all = this.#names.flatMap(({ main, fence, queue, holders, once }) => [
      ...[main, fence, queue, holders, once],
      ...this.#attempts.slice(-3).map(({ token }) => `${queue}:${token}`),
    ]);
    return this.#epoch === undefined ? all : [...all, this.#epoch];
  }

  /**
   * @param run runs the command, and gives the answer: what follows depends on it
   */
  step(nowUs: number, run: (command: ModelCommand) => unknown): void {
    const random = this.#random;
    const chosen = random.fraction();
    const ask = (script: Script, call: ScriptCall): unknown => {
      const isBySha = random.chance(0.98); // texts are long
      return run(isBySha ? ['EVALSHA', script.sha, ...call] : ['EVAL', script.lua, ...call]);
    };
    if (chosen < 0.45) this.#acquire(nowUs, ask);
    else if (chosen < 0.68) this.#release(ask);
    else if (chosen < 0.84) this.#extend(nowUs, ask);
    else if (chosen < 0.89) this.#raiseFence(nowUs, ask);
    else if (chosen < 0.97) this.#once(nowUs, ask);
    else this.#quarantine(ask);
  }

  #acquire(nowUs: number, ask: (script: Named, call: ScriptCall) => unknown): void {
    const random = this.#random;
    const attempt = random.chance(0.5) ? this.#anyAttempt() : this.#newAttempt();
    const script = SCRIPTS.acquire;
    const others = this.#attempts.map(({ fencingToken }) => fencingToken);
    const call = script.encode({
      names: attempt.names,
      epoch: this.#epoch,
      token: attempt.token,
      ttlMs: random.chance(0.07) ? 0 : random.pick(TTLS_MS),
      fenceKeepMs: random.pick(KEEPS_MS),
      turns: this.#turns,
      lineMode: this.#oftenOurLineMode(),
      member: random.chance(0.75) ? attempt.member : '',
      ticket: random.chance(0.9) ? attempt.ticket : nowUs - random.between(0, 5_000_000),
      proposal: random.chance(0.7) ? 0 : nowUs + random.between(-1_000, 1_001_000),
      maxTtlMs: this.#epoch === undefined ? undefined : MAX_TTL_MS,
      joins: random.chance(0.85) ? undefined : random.pick([...others, 5]),
    });
    const answer = script.decode(ask(script, call));
    if (answer.status === 'granted') attempt.fencingToken = answer.fencingToken;
    if (answer.status === 'refused') attempt.ticket = answer.ticket;
  }

  #release(ask: (script: Named, call: ScriptCall) => unknown): void {
    const random = this.#random;
    const attempt = this.#anyAttempt();
    const { fencingToken = 7, names } = attempt;
    const lineMode = this.#oftenOurLineMode();
    const isUsual = random.chance(0.5);
    const call = SCRIPTS.release.encode({
      names: isUsual ? names : this.#someNames(),
      token: random.chance(0.9) ? attempt.token : '',
      lineMode,
      lastToken: random.chance(0.8) ? fencingToken + random.pick([0, 0, 3, 1_023]) : undefined,
      fenceKeepMs: random.chance(0.6) ? undefined : random.pick(KEEPS_MS),
      member: random.chance(0.5) ? '' : attempt.member,
      wakes: isUsual ? undefined : random.pick(['nobody', 'older', undefined]),
      leaves: random.chance(0.1) ? 'line' : undefined,
      holdMs: random.chance(0.8) ? 0 : random.pick([0.5, 20, 2_000]),
    });
    ask(SCRIPTS.release, call);
  }

  #extend(nowUs: number, ask: (script: Named, call: ScriptCall) => unknown): void {
    const random = this.#random;
    const lineMode = this.#oftenOurLineMode();
    const chosen = Array.from({ length: random.between(1, 3) }, () => this.#anyAttempt());
    const renewed = chosen.flatMap((attempt) => attempt.names.map((names) => ({ attempt, names })));
    const call = SCRIPTS.extend.encode({
      renewals: renewed.map(({ attempt, names }) => ({
        names,
        token: attempt.token,
        ttlMs: random.pick(TTLS_MS),
        fencingToken: (attempt.fencingToken ?? nowUs) + random.pick([0, 0, 1, 1_023]),
        sureUntilUs: nowUs + random.pick([1_000_000, 5_000, 0, -1]),
        expectedFence: random.chance(0.7) ? attempt.goneFence : undefined,
      })),
      epoch: this.#epoch,
      fenceKeepMs: random.pick(KEEPS_MS),
      maxTtlMs: this.#epoch === undefined ? undefined : MAX_TTL_MS,
      lineMode,
      turns: this.#turns,
    });
    const answer = SCRIPTS.extend.decode(ask(SCRIPTS.extend, call));
    if (answer.status !== 'answered') return;
    answer.keys.forEach((key, index) => {
      const attempt = renewed[index]?.attempt;
      if (key.status === 'gone' && attempt !== undefined) attempt.goneFence = key.fence;
    });
  }

  #raiseFence(nowUs: number, ask: (script: Named, call: ScriptCall) => unknown): void {
    const random = this.#random;
    const { names, token, fencingToken = nowUs } = this.#anyAttempt();
    const call = SCRIPTS.raiseFence.encode({
      names,
      token,
      fencingToken: fencingToken + random.pick([0, 1, -1, 5_000, 2_000_000]),
      ttlMs: random.pick(TTLS_MS),
      fenceKeepMs: random.pick(KEEPS_MS),
    });
    ask(SCRIPTS.raiseFence, call);
  }

  #once(nowUs: number, ask: (script: Named, call: ScriptCall) => unknown): void {
    const random = this.#random;
    const { names, token, fencingToken = nowUs } = this.#anyAttempt();
    const reference = {
      token,
      owner: random.pick(['owner', 'other', token]),
      fencingToken: random.pick([0, fencingToken, fencingToken + 1]),
      lifeMs: random.pick([5, 1_000, 60_000]),
    };
    const what = random.pick([
      'begin',
      'keep',
      'done',
      'failed',
      'final',
      'returned',
      'undo',
    ] as const);
    const call = SCRIPTS.once.encode(
      names[0],
      what === 'begin'
        ? { ...reference, what, attempts: random.between(1, 3), keepMs: random.pick([10, 9_000]) }
        : {
            ...reference,
            what,
            attempt: random.between(1, 4),
            text: random.pick(['', '"é"', 'x']),
          },
    );
    ask(SCRIPTS.once, call);
  }

  #quarantine(ask: (script: Named, call: ScriptCall) => unknown): void {
    const call = SCRIPTS.quarantine.encode({
      epoch: this.#epoch ?? epochName('lock:'),
      maxTtlMs: MAX_TTL_MS,
      unknownServer: this.#random.pick(['is new', 'forgot']),
    });
    ask(SCRIPTS.quarantine, call);
  }

  /** Nearly always: not all processes have to be of the same opinion. */
  #oftenOurLineMode(): LineMode {
    return this.#random.chance(0.95)
      ? this.#lineMode
      : this.#random.pick(['standalone', 'cluster', 'quorum']);
  }

  #someNames(): readonly [KeyNames, ...KeyNames[]] {
    const random = this.#random;
    const size = random.chance(0.6) ? 1 : random.between(1, this.#names.length);
    return random.sample(this.#names, size) as [KeyNames, ...KeyNames[]];
  }

  /** Mostly one of the last ones. */
  #anyAttempt(): Attempt {
    const recent = this.#random.chance(0.8) ? this.#attempts.slice(-6) : this.#attempts;
    return recent.length === 0 ? this.#newAttempt() : this.#random.pick(recent);
  }

  #newAttempt(): Attempt {
    const random = this.#random;
    this.#count += 1;
    const names = this.#someNames();
    const name = `maker.${this.#count}`;
    const isOurs = random.chance(0.95);
    const token = isOurs ? `holdfast:${name}${random.pick(MODES)}` : `foreign-${name}`;
    const attempt: Attempt = {
      ...{ token, names, member: this.#memberOf(token, names) },
      ...{ ticket: undefined, fencingToken: undefined, goneFence: undefined },
    };
    this.#attempts.push(attempt);
    return attempt;
  }

  #memberOf(token: string, names: readonly [KeyNames, ...KeyNames[]]): string {
    const random = this.#random;
    const channel = random.pick(this.channels);
    const id = token.replace('holdfast:', '');
    if (this.#lineMode === 'quorum') return `${id} 0 ${channel}`;
    const isSplit = random.chance(0.15);
    const claimMs = isSplit ? 0 : random.pick([20, 300, 1_000]);
    const place = `${token} ${claimMs} ${channel}`;
    return names.length === 1 && !isSplit ? place : `${place}\n${names[0].queue}`;
  }
}
