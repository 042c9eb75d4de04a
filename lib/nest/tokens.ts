import { Inject } from '@nestjs/common';
import { LockService } from './lock.service.js';

/**
 * The injection token of a `LockService`: the class itself, or a token of its own for a service that was registered
 * with a `name`.
 *
 * @example
 * ```ts
 * import { getLockServiceToken } from 'nestjs-holdfast';
 *
 * const provider = { provide: getLockServiceToken('jobs'), useValue: locks };
 * ```
 */
export const getLockServiceToken = (name?: string | symbol): typeof LockService | symbol => {
  if (name === undefined) return LockService;
  return typeof name === 'symbol' ? name : Symbol.for(`nestjs-holdfast:${name}`);
};

/**
 * Injects the `LockService` that was registered with a `name`.
 *
 * @example
 * ```ts
 * import { InjectLockService, type LockService } from 'nestjs-holdfast';
 *
 * class Jobs {
 *   constructor(@InjectLockService('jobs') private readonly jobs: LockService) {}
 * }
 * ```
 */
export const InjectLockService = (name?: string | symbol): ParameterDecorator & PropertyDecorator =>
  Inject(getLockServiceToken(name));
