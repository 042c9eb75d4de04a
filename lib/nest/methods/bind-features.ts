import { LockConfigurationError } from '../../errors.js';
import { CALLED, features, LOCK_FEATURE, LockFeature } from './lock-feature.js';
import { lockedMethodsOf } from './locked-methods-of.js';

/** As much of a provider of Nest as is needed. */
interface Provider {
  readonly instance: unknown;
  readonly host?: NestModule | undefined;
  readonly isAlias: boolean;
  /** Whether a factory made it, or it was given as a value. */
  readonly isNotMetatype: boolean;
}

/** As much of a module of Nest as is needed. */
interface NestModule {
  readonly name: string;
  readonly metatype: unknown;
  readonly imports: ReadonlySet<NestModule>;
  readonly exports: ReadonlySet<unknown>;
  readonly providers: ReadonlyMap<unknown, { readonly instance: unknown }>;
}

/**
 * What a module imports for its classes, itself or by a module that exports what it imports.
 *
 * @throws LockConfigurationError when it does so twice: Nest would take one of them
 */
function featureIn(module: NestModule): LockFeature | undefined {
  const [feature, another] = exportedBy(module.imports);
  if (another !== undefined)
    throw new LockConfigurationError(
      `${module.name} imports ${CALLED} twice. Import it once, with all options: LockModule.forFeature({ keyPrefix: 'orders:', ttl: '1m' }).`,
    );
  return feature;
}

/** What Nest finds when it looks for a feature in imported modules: theirs, and that of modules which they export. */
function exportedBy(
  modules: Iterable<NestModule>,
  found = new Set<LockFeature>(),
  seen = new Set<NestModule>(),
): Iterable<LockFeature> {
  for (const module of modules) {
    if (seen.has(module)) continue;
    seen.add(module);
    const { exports, imports, providers } = module;
    const own = providers.get(LOCK_FEATURE)?.instance;
    if (exports.has(LOCK_FEATURE) && own instanceof LockFeature) found.add(own);
    else
      exportedBy(
        [...imports].filter(({ metatype }) => exports.has(metatype)),
        found,
        seen,
      );
  }
  return found;
}

/**
 * Gives what factories made, and given values, the feature of their module. Nest injects it into what it makes itself, which stays as it is
 * when another module's factory passes it on.
 *
 * @throws LockConfigurationError when modules whose features differ provide one object: nothing says whose it is
 */
export function bindFeatures(providers: readonly Provider[]): void {
  const byModule = new Map<NestModule, LockFeature | undefined>();
  for (const { host } of providers) if (host !== undefined) byModule.set(host, featureIn(host));
  const made = new Set(providers.filter((one) => !one.isNotMetatype).map((one) => one.instance));
  const owners = new Map<object, NestModule>();
  for (const { instance, host, isAlias } of providers) {
    if (host === undefined || isAlias || made.has(instance)) continue;
    if (typeof instance !== 'object' || instance === null || !isLocking(instance)) continue;
    const owner = owners.get(instance) ?? host;
    const feature = byModule.get(host);
    if (byModule.get(owner) !== feature)
      throw new LockConfigurationError(
        `${owner.name} and ${host.name} provide one object of ${instance.constructor.name}, and ${CALLED} differs between them. ` +
          'Its decorated methods can go by one of the two only: in the other module, name the object with "useExisting".',
      );
    owners.set(instance, owner);
    if (feature !== undefined) features.set(instance, feature);
  }
}

const isLocking = (instance: object): boolean => [...lockedMethodsOf(instance)].length > 0;
