import { Inject, Optional } from '@nestjs/common';
import type { RunOptions } from '../../options/acquire-options.js';
import { inPlace } from '../../options/in-place.js';
import { resolve } from '../../options/schema.js';
import { OTHER_WORDS, refuseUnknown } from '../../options/unknown-option.js';
import { FEATURE, type LockFeatureOptions } from './method-options.js';

/** For messages. */
export const CALLED = 'LockModule.forFeature()';

let count = 0;

/** What `LockModule.forFeature` says. */
export class LockFeature {
  readonly keyPrefix: string;
  /** Nest's `deep-hash` takes dynamic modules for one whose providers read the same: this tells them apart. */
  readonly id = ++count;
  readonly #options: RunOptions;

  /** @throws LockConfigurationError for options that are wrong */
  constructor(given: LockFeatureOptions) {
    refuseUnknown({ called: CALLED, options: FEATURE, elsewhere: OTHER_WORDS }, given);
    inPlace(CALLED, () => resolve(FEATURE, given));
    const { keyPrefix = '', ...options } = given;
    this.keyPrefix = keyPrefix;
    this.#options = options;
  }

  /** What a method says of its lock, and this where it says nothing. */
  around(own: RunOptions): RunOptions {
    const said = Object.entries(own).filter(([, value]) => value !== undefined);
    return { ...this.#options, ...Object.fromEntries(said) };
  }
}

/** Nest provides it in modules that import `LockModule.forFeature`. */
export const LOCK_FEATURE = Symbol('LockModule.forFeature');

const features = new WeakMap<object, LockFeature>();

/** The feature of the module that made the object. */
export const featureOf = (instance: unknown): LockFeature | undefined =>
  typeof instance === 'object' && instance !== null ? features.get(instance) : undefined;

/** The object goes by the options of this feature. */
export function bindFeature(instance: object, feature: LockFeature): void {
  features.set(instance, feature);
}

const installed = new WeakSet();

/** Has Nest inject the feature, where there is one, into every instance that it makes of the class, or of one that extends it. */
export function installFeature(prototype: object): void {
  if (installed.has(prototype)) return;
  installed.add(prototype);
  Object.defineProperty(prototype, LOCK_FEATURE, {
    configurable: true,
    get(this: object) {
      return featureOf(this);
    },
    set(this: object, feature: LockFeature) {
      bindFeature(this, feature);
    },
  });
  Optional()(prototype, LOCK_FEATURE);
  Inject(LOCK_FEATURE)(prototype, LOCK_FEATURE);
}
