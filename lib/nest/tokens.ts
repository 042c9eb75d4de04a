import { Inject } from '@nestjs/common';
import { LockService } from './lock.service.js';

/** What a `LockService` is injected by: the class, or for one that was registered with a `name` a token of its own. */
export const getLockServiceToken = (name?: string | symbol): typeof LockService | symbol => {
  if (name === undefined) return LockService;
  return typeof name === 'symbol' ? name : Symbol.for(`nestjs-holdfast:${name}`);
};

/** Injects the `LockService` that was registered with a `name`: `constructor(@InjectLockService('jobs') locks: LockService)`. */
export const InjectLockService = (name?: string | symbol): ParameterDecorator & PropertyDecorator =>
  Inject(getLockServiceToken(name));
