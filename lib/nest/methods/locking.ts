import { constantOptions, type RunOptions } from '../../options/acquire-options.js';
import type { Resolved } from '../../options/schema.js';
import type { LockFeature } from './lock-feature.js';
import type { WITH_LOCK } from './method-options.js';

/** What the decorators have in common: each lacks some of it. */
export type MethodOptions = Partial<Resolved<typeof WITH_LOCK>>;

/** What a decorator says where its method says nothing. */
interface MethodDefaults {
  readonly always: Pick<RunOptions, 'reentrant'>;
  readonly usualWait: 0 | undefined;
}

/** How a method locks. */
interface LockingOptions {
  /** Without what the service's options decide about. */
  readonly run: RunOptions;
  /** Inside the lock of its handler's frame. */
  readonly nested: RunOptions;
  /** Whether its calls stand in line. */
  readonly waits: boolean;
}

/** How a method locks: worked out once for each module that its class is in. */
export class Locking {
  readonly #said: RunOptions;
  readonly #usualWait: MethodDefaults['usualWait'];
  readonly #alone: LockingOptions;
  readonly #inModules = new WeakMap<LockFeature, LockingOptions>();

  constructor(given: MethodOptions, { always, usualWait }: MethodDefaults) {
    this.#said = { ...runOptionsFrom(given), ...always };
    this.#usualWait = usualWait;
    this.#alone = this.#from(this.#said);
  }

  /** @param feature what the module says */
  in(feature: LockFeature | undefined): LockingOptions {
    if (feature === undefined) return this.#alone;
    const known = this.#inModules.get(feature);
    if (known !== undefined) return known;
    const options = this.#from(feature.around(this.#said));
    this.#inModules.set(feature, options);
    return options;
  }

  #from(said: RunOptions): LockingOptions {
    const run = constantOptions({ ...said, wait: said.wait ?? this.#usualWait });
    return { run, nested: constantOptions({ ...run, reentrant: true }), waits: run.wait !== 0 };
  }
}

function runOptionsFrom({
  ttlMs: ttl,
  waitMs: wait,
  maxHoldMs: maxHold,
  minHoldMs: minHold,
  ...others
}: MethodOptions): RunOptions {
  const { autoExtend, mode, limit, release, reentrant } = others;
  // A function is asked at each call.
  const places = typeof others.places === 'number' ? others.places : undefined;
  return {
    ...{ ttl, wait, autoExtend, maxHold, mode, limit, places },
    ...{ minHold, release, reentrant },
  };
}
