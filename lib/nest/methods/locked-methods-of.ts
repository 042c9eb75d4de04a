import 'reflect-metadata';
import type { LockedMethod } from './locked-method.js';

const LOCKED_METHOD = Symbol('holdfast:locked-method');

/** Marks a function as locked; wrappers that copy metadata carry the mark along. */
export function markLocked(method: object, locked: LockedMethod): void {
  Reflect.defineMetadata(LOCKED_METHOD, locked, method);
}

/** What `@WithLock` says of a function, if it was decorated. */
export const lockedMethodOf = (method: object): LockedMethod | undefined =>
  Reflect.getMetadata(LOCKED_METHOD, method) as LockedMethod | undefined;

interface OwnMethod {
  /** The prototype that has it. */
  readonly prototype: object;
  readonly name: string | symbol;
  readonly method: (...args: never[]) => unknown;
}

/** The methods of a prototype and of those that it extends, the nearest first: overridden ones, too. */
export function* methodsOf(prototype: object | null): Generator<OwnMethod> {
  if (prototype === null || prototype === Object.prototype) return;
  for (const name of Reflect.ownKeys(prototype)) {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    if (name !== 'constructor' && typeof method === 'function')
      yield { prototype, name, method: method as OwnMethod['method'] };
  }
  yield* methodsOf(Object.getPrototypeOf(prototype) as object | null);
}

/** All locked methods of an object, inherited and overridden ones too. */
export function* lockedMethodsOf(instance: object): Generator<LockedMethod> {
  for (const { method } of methodsOf(Object.getPrototypeOf(instance) as object | null)) {
    const locked = lockedMethodOf(method);
    if (locked !== undefined) yield locked;
  }
}

/** What source text takes from the class that is extended, or from a prototype: by its name, or by a value, as some compilers do. */
const OF_SUPER = /\b(?:super|prototype)\s*(?:\.\s*([\p{ID_Continue}$]+)|\[)/gu;

/** Whether a method calls the one that it overrides; where in doubt, it does. */
function callsSuper(name: string | symbol, method: object): boolean {
  const source = Function.prototype.toString.call(method);
  return Array.from(source.matchAll(OF_SUPER), ([, taken = name]) => taken).includes(name);
}

/** Methods that override a locked one without being locked, and without calling it. */
export function* unlockedOverrides(
  instance: object,
): Generator<{ readonly override: string; readonly locked: LockedMethod }> {
  const overrides = new Map<string | symbol, string>();
  const methods = methodsOf(Object.getPrototypeOf(instance) as object | null);
  for (const { prototype, name, method } of methods) {
    const override = overrides.get(name);
    const locked = lockedMethodOf(method);
    const called = `${prototype.constructor.name}.${String(name)}`;
    if (locked === undefined) {
      if (override === undefined && !callsSuper(name, method)) overrides.set(name, called);
    } else {
      if (override !== undefined) yield { override: `${override} overrides ${called}`, locked };
      overrides.delete(name);
    }
  }
}
