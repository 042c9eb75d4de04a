import type { DiscoveryService } from '@nestjs/core';
import { LockConfigurationError } from '../../errors.js';
import { inPlace } from '../../options/in-place.js';
import { refuseRawPaths, refuseUnfit } from '../handlers/start-up-checks.js';
import { byHand, CALLED, features, LOCK_FEATURE, LockFeature } from './lock-feature.js';
import { lockedMethodsOf } from './locked-methods-of.js';
import type { NamedLocks } from './service-slot.js';

/**
 * Gives an object the service for those of its `@WithLock` methods that ask for a service of that name.
 *
 * @throws LockConfigurationError when one of them cannot work
 */
export function bindLockedMethods(instance: object, service: NamedLocks): void {
  for (const locked of lockedMethodsOf(instance)) {
    const { slot } = locked;
    locked.check(instance);
    if (slot.serviceName !== service.name) continue;
    refuseUnfit(instance, locked);
    refuseRawPaths(instance, locked);
    inPlace(locked.where, () => {
      service.resolved(locked.lockingIn(locked.featureOf(instance)).run);
      if (locked.decorator.isOnce === true) service.once.assertPossible();
    });
    slot.set(instance, service);
  }
}

/** A provider or a controller of Nest, which has an object. */
export type Provided = Omit<ReturnType<DiscoveryService['getProviders']>[number], 'instance'> & {
  readonly instance: object;
};

type NestModule = NonNullable<Provided['host']>;

/** Modules, and those that they lead to, each once. */
export function* reached(
  modules: Iterable<NestModule>,
  next: (module: NestModule) => Iterable<NestModule>,
  seen = new Set<NestModule>(),
): Generator<NestModule> {
  for (const module of modules) {
    if (seen.has(module)) continue;
    seen.add(module);
    yield module;
    yield* reached(next(module), next, seen);
  }
}

/** The feature that a module provides: one that `LockModule.forFeature` returned. */
const featureOf = ({ providers }: NestModule): unknown => providers.get(LOCK_FEATURE)?.instance;

/**
 * What a module imports for its classes, itself or by a module that exports what it imports. Nest looks for it in the same
 * way.
 *
 * @throws LockConfigurationError when it does so twice: Nest would take one of them
 */
function featureIn({ imports, name }: NestModule): LockFeature | undefined {
  const exported = (module: NestModule): readonly NestModule[] =>
    [...module.imports].filter(({ metatype }) => module.exports.has(metatype));
  const seen = new Set<NestModule>();
  const found = new Map<LockFeature, string>();
  for (const direct of imports)
    for (const module of reached([direct], exported, seen)) {
      const feature = featureOf(module);
      const global = direct.isGlobal ? 'the global ' : '';
      if (feature instanceof LockFeature)
        found.set(feature, module === direct ? '' : `, once through ${global}${direct.name}`);
    }
  const [feature, another] = found.keys();
  if (another !== undefined)
    throw new LockConfigurationError(
      `${name} imports ${CALLED} twice${[...found.values()].join('')}. Import it once, with all options: ` +
        "LockModule.forFeature({ keyPrefix: 'orders:', ttl: '1m' }). What all modules share belongs in LockModule.forRoot().",
    );
  return feature;
}

/**
 * Gives what factories made, and given values, the feature of their module. Nest injects it into what it makes itself, which stays as it is
 * when another module's factory passes it on.
 *
 * @throws LockConfigurationError when modules whose features differ provide one object: nothing says whose it is
 */
export function bindFeatures(providers: readonly Provided[]): void {
  const byModule = new Map<NestModule, LockFeature | undefined>();
  for (const { host } of providers) if (host !== undefined) byModule.set(host, featureIn(host));
  const made = new Set(providers.filter((one) => !one.isNotMetatype).map((one) => one.instance));
  const owners = new Map<object, NestModule>();
  for (const { instance, host, isAlias } of providers) {
    if (host === undefined || isAlias || made.has(instance)) continue;
    const bound = byHand.get(instance);
    if ([...lockedMethodsOf(instance)].every(({ slot }) => bound?.has(slot.serviceName))) continue;
    const owner = owners.get(instance) ?? host;
    const feature = byModule.get(host);
    if (byModule.get(owner) !== feature)
      throw new LockConfigurationError(
        `${owner.name} and ${host.name} provide one object of ${instance.constructor.name}, and ${CALLED} differs between them. ` +
          'Its decorated methods can go by one of the two only: in the other module, name the object with "useExisting".',
      );
    owners.set(instance, owner);
    // Also none, after that of an earlier application.
    features.set(instance, feature);
  }
}
