import 'reflect-metadata';
import { Inject, Optional } from '@nestjs/common';
import { LockConfigurationError } from '../../errors.js';
import { LockInterceptor } from '../handlers/lock.interceptor.js';
import { enhance, INTERCEPTORS } from '../handlers/own-answers.js';
import { getLockServiceToken } from '../tokens.js';
import { features, LOCK_FEATURE } from './lock-feature.js';
import { LockedCall } from './locked-call.js';
import { LockedMethod, type LockDecorator } from './locked-method.js';
import { lockedMethodOf, markLocked } from './locked-methods-of.js';
import type { WithLockKey } from './with-lock.types.js';

type Method = (...args: unknown[]) => unknown;

type MethodDecorator = (
  target: object,
  propertyKey: string | symbol,
  descriptor?: PropertyDescriptor,
) => void;

/**
 * Replaces a method by a wrapper that runs it under its lock.
 *
 * @param runnerOf returns how the calls of the method are run
 */
export function lockingDecorator(
  decorator: LockDecorator,
  key: WithLockKey,
  options: object | undefined,
  runnerOf: (locked: LockedMethod) => (call: LockedCall) => unknown,
): MethodDecorator {
  const { called } = decorator;
  refuseBare(called, key, options);
  return (target, propertyKey, descriptor) => {
    refuseStandardDecorator(called, propertyKey);
    const original: unknown = descriptor?.value;
    if (descriptor === undefined || typeof original !== 'function') {
      throw new LockConfigurationError(notOnMethod(called, target, propertyKey, descriptor));
    }
    if (typeof target === 'function') {
      throw new LockConfigurationError(
        `${called} can only be applied to instance methods: ${target.name}.${String(propertyKey)} is static, and no LockService is injected into a class.`,
      );
    }
    const method = original as Method;
    refuseSecond(called, lockedMethodOf(method));
    const locked = new LockedMethod(decorator, { target, propertyKey, method, key, options });
    const run = runnerOf(locked);
    // A Proxy keeps name, length and whatever else other decorators have put on the function.
    const wrapped = new Proxy(method, {
      apply: (_method, self: unknown, args: unknown[]) =>
        run(new LockedCall(locked, method, { self, args })),
    });
    descriptor.value = wrapped;
    locked.slot.install(target, Inject(getLockServiceToken(locked.slot.serviceName)));
    features.install(target, Optional(), Inject(LOCK_FEATURE));
    for (const noted of Reflect.getOwnMetadataKeys(method))
      Reflect.defineMetadata(noted, Reflect.getOwnMetadata(noted, method), wrapped);
    // First, so that the interceptors of this method run inside the lock whether they are written above or below.
    enhance(wrapped, INTERCEPTORS, LockInterceptor);
    markLocked(wrapped, locked);
  };
}

/** Says where else the decorator is. JavaScript, and compilers that check no types, let it be anywhere. */
function notOnMethod(
  called: string,
  target: object,
  propertyKey: string | symbol | undefined,
  descriptor: PropertyDescriptor | undefined,
): string {
  const owner = typeof target === 'function' ? target : target.constructor;
  if (propertyKey === undefined)
    return `${called} on ${owner.name} is on a class. Put it on each method that needs a lock.`;
  const name = String(propertyKey);
  const where = `${called} on ${owner.name}.${name} is on`;
  return descriptor?.get !== undefined || descriptor?.set !== undefined
    ? `${where} an accessor. Move its work into an async method.`
    : `${where} a property, such as an arrow function, which no prototype has. Make it a method: async ${name}() { … }.`;
}

/**
 * The decorator without its parentheses: then it is called with what decorates, in place of its own arguments.
 *
 * @throws LockConfigurationError
 */
function refuseBare(called: string, first: unknown, second: unknown): void {
  const isPrototype = typeof first === 'object' && first !== null && !Array.isArray(first);
  // No key function is a class.
  const type = typeof first === 'function' && /^class\b/.test(String(first)) ? first : undefined;
  const isOlder =
    (isPrototype || type !== undefined) &&
    (typeof second === 'string' || typeof second === 'symbol');
  const name = isOlder ? second : (nameOfStandard(second) ?? type?.name);
  if (name === undefined) return;
  // One without a prototype has no constructor.
  const { constructor: made } = (isPrototype ? first : {}) as { constructor?: { name: string } };
  const owner = isPrototype ? made : isOlder ? type : undefined;
  const of = owner === undefined ? '' : `${owner.name}.`;
  throw new LockConfigurationError(
    `${called} on ${of}${String(name)} needs parentheses, and a key in them: ${called}('order:<orderId>').`,
  );
}

/** Compilers call decorators in two ways, and Nest knows the older one. */
function refuseStandardDecorator(called: string, propertyKey: unknown): void {
  const name = nameOfStandard(propertyKey);
  if (name === undefined) return;
  throw new LockConfigurationError(
    `${called} on ${String(name)} was compiled as a standard decorator, and Nest needs the older ones: set ` +
      '"experimentalDecorators": true in tsconfig.json, or version "legacy" of the decorators plugin of Babel.',
  );
}

/** The name in the context object that a standard decorator gets as its second argument. */
const nameOfStandard = (context: unknown): string | symbol | undefined =>
  typeof context === 'object' && context !== null && 'addInitializer' in context
    ? (context as unknown as { readonly name: string | symbol }).name
    : undefined;

function refuseSecond(called: string, first: LockedMethod | undefined): void {
  if (first === undefined) return;
  const { called: other } = first.decorator;
  throw new LockConfigurationError(
    other === '@WithLock' && called === '@WithLock'
      ? `${first.name} has @WithLock twice. Give one of them all keys: @WithLock(['a', 'b']).`
      : `${first.name} has ${other} and ${called}. Let one method call the other, or keep one of them: @RunOnce locks, too.`,
  );
}
