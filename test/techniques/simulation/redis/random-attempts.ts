import { MARK } from '../../../../lib/store/owner-token.js';
import { keyNames, type KeyNames } from '../../../../lib/store/redis/scripts/key-names.js';
import type { LineMode } from '../../../../lib/store/redis/scripts/script.js';
import type { Random } from '../../faults/random.js';

export type Names = readonly [KeyNames, ...KeyNames[]];

/** Somebody who wants keys. */
export interface Attempt {
  readonly token: string;
  readonly names: Names;
  /** Its place in line. */
  readonly member: string;
  ticket: number | undefined;
  fencingToken: number | undefined;
  /** What a renewal found where a key was gone. */
  goneFence: number | undefined;
}

const MODES = [
  '',
  '',
  '',
  ':shared',
  ':shared',
  ':limit:1',
  ':limit:2',
  ':limit:3',
  '*2:limit:3',
  '*3:limit:3',
];

/** Who wants keys, of a few processes with one way to decide on a line. */
export class RandomAttempts {
  readonly prefix: string;
  readonly names: readonly KeyNames[];
  readonly channels: readonly string[];
  /** Who was granted its keys last. */
  granted: Attempt | undefined;
  readonly #random: Random;
  readonly #lineMode: LineMode;
  readonly #attempts: Attempt[] = [];

  constructor(random: Random) {
    this.#random = random;
    this.prefix = random.pick(['lock:', '{app}:', 'ü:']);
    this.#lineMode = random.pick(['standalone', 'standalone', 'cluster', 'quorum']);
    this.names = ['a', 'b', 'c', 'é'].slice(0, random.between(1, 4)).map(keyNames(this.prefix));
    const isSharded = this.#lineMode === 'cluster' && random.chance(0.7);
    this.channels = ['x', 'y', 'z'].map((name) => `holdfast:${name}${isSharded ? ':{tag}' : ''}`);
  }

  /** All keys that the scripts use. */
  get keys(): readonly string[] {
    return this.names.flatMap(({ main, fence, queue, holders, limit, once }) => [
      ...[main, fence, queue, holders, limit, once],
      ...this.#attempts.slice(-3).map(({ token }) => `${queue}:${token}`),
    ]);
  }

  /** The fencing tokens of all. */
  get fencingTokens(): readonly (number | undefined)[] {
    return this.#attempts.map(({ fencingToken }) => fencingToken);
  }

  /** Mostly one of the last ones. */
  any(): Attempt {
    const recent = this.#random.chance(0.8) ? this.#attempts.slice(-6) : this.#attempts;
    return recent.length === 0 ? this.add() : this.#random.pick(recent);
  }

  /** Mostly one that may hold its keys. */
  holder(): Attempt {
    return (this.#random.chance(0.5) ? this.granted : undefined) ?? this.any();
  }

  add(): Attempt {
    const random = this.#random;
    const names = this.someNames();
    const name = `maker.${this.#attempts.length}`;
    const token = random.chance(0.95) ? MARK + name + random.pick(MODES) : `foreign-${name}`;
    const attempt: Attempt = {
      ...{ token, names, member: this.#memberOf(token) },
      ...{ ticket: undefined, fencingToken: undefined, goneFence: undefined },
    };
    this.#attempts.push(attempt);
    return attempt;
  }

  someNames(): Names {
    const random = this.#random;
    const size = random.chance(0.6) ? 1 : random.between(1, this.names.length);
    return random.sample(this.names, size) as unknown as Names;
  }

  /** Mostly as it was given. */
  rememberedPlace({ token, member }: Attempt): string {
    return this.#random.chance(0.85) ? member : `${token} 7 ${this.#random.pick(this.channels)}`;
  }

  /** Nearly always the same: not all processes have to be of one opinion. */
  lineMode(): LineMode {
    return this.#random.chance(0.95)
      ? this.#lineMode
      : this.#random.pick(['standalone', 'cluster', 'quorum']);
  }

  #memberOf(token: string): string {
    const random = this.#random;
    const channel = random.pick(this.channels);
    if (this.#lineMode === 'quorum') return `${token.replace(MARK, '')} 0 ${channel}`;
    return `${token} ${random.pick([0, 20, 300, 1_000])} ${channel}`;
  }
}
