import { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError } from '../errors.js';
import type { LockService } from './lock.service.js';

type NestModule = ModulesContainer extends Map<string, infer Value> ? Value : never;

/**
 * Refuses a service that `LazyModuleLoader` makes: Nest calls no lifecycle hooks of such modules, so its connections would never be closed. connections.
 *
 * @throws LockConfigurationError
 */
export async function refuseLazy(service: LockService, modules: ModulesContainer): Promise<void> {
  const all = [...modules.values()];
  const host = all.find(({ providers }) =>
    [...providers.values()].some(({ instance }) => instance === service),
  );
  // The first module is Nest's own, with the providers of the core (a minifier changes its name); the next one is the root.
  const root = all.find(({ providers }) => !providers.has(ModulesContainer));
  if (host === undefined || root === undefined || importedBy(root).has(host)) return;
  await service.shutdown(0);
  throw new LockConfigurationError(
    'LockModule.forRoot was loaded lazily, by LazyModuleLoader: Nest calls no lifecycle hooks of such modules, so its ' +
      'connections would never be closed. Import it in the root module. Modules that are loaded lazily use its LockService, and may import LockModule.forFeature.',
  );
}

/** A module and whatever it imports, itself or by others. */
function importedBy(module: NestModule, found = new Set<NestModule>()): ReadonlySet<NestModule> {
  if (found.has(module)) return found;
  found.add(module);
  for (const imported of module.imports) importedBy(imported, found);
  return found;
}
