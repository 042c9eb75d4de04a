import type { RunOptions } from '../../options/acquire-options.js';
import { inPlace } from '../../options/in-place.js';
import { plain, resolve } from '../../options/schema.js';
import { OTHER_WORDS, refuseUnknown } from '../../options/unknown-option.js';
import { FEATURE, type LockFeatureOptions } from './method-options.js';
import { Injected, type NamedLocks } from './service-slot.js';

/** For messages. */
export const CALLED = 'LockModule.forFeature()';

let count = 0;

/** What `LockModule.forFeature` says, or who binds an object by hand. */
export class LockFeature {
  readonly keyPrefix: string;
  /** Nest's `deep-hash` takes dynamic modules for one whose providers read the same: this tells them apart. */
  readonly id = ++count;
  /** What a method does not say of its lock. */
  readonly options: RunOptions;

  /** @throws LockConfigurationError for options that are wrong */
  constructor(given: LockFeatureOptions, called = CALLED) {
    refuseUnknown({ called, options: FEATURE, elsewhere: OTHER_WORDS }, given);
    inPlace(called, () => resolve(FEATURE, given));
    const { keyPrefix = '', ...options } = plain(FEATURE, given);
    this.keyPrefix = keyPrefix;
    this.options = options;
  }
}

/** Nest provides it in modules that import `LockModule.forFeature`. */
export const LOCK_FEATURE = Symbol('LockModule.forFeature');

/** What was injected as the feature. A mock of a test, such as one of `useMocker`, is none. */
export const genuineFeature = (injected: unknown): LockFeature | undefined =>
  injected instanceof LockFeature ? injected : undefined;

/** The features of objects of decorated classes. */
class FeatureSlot extends Injected<LockFeature | undefined> {
  /** What modules provide objects with. An object that Nest made keeps what was injected. */
  readonly #provided = new WeakMap<object, LockFeature | undefined>();

  override get(instance: unknown): LockFeature | undefined {
    return genuineFeature(super.get(instance)) ?? this.#provided.get(instance as object);
  }

  override set(instance: object, feature: LockFeature | undefined): void {
    this.#provided.set(instance, feature);
  }
}

/** The feature of the module that made the object. */
export const features = new FeatureSlot(LOCK_FEATURE);

/** What `bind` was given for an object, by the names of services. It goes before the feature of the module. */
export const byHand = new WeakMap<object, ReadonlyMap<NamedLocks['name'], LockFeature>>();
