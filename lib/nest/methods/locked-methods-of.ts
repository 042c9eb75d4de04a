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

/** The prototypes of an object or class prototype, the nearest first. */
function* prototypesOf(prototype: object | null): Generator<object> {
  for (
    let each = prototype;
    each !== null && each !== Object.prototype;
    each = Object.getPrototypeOf(each) as object | null
  ) {
    yield each;
  }
}

/** The methods that a prototype has of its own. */
function* ownMethods(
  prototype: object,
): Generator<readonly [string | symbol, (...args: never[]) => unknown]> {
  for (const name of Reflect.ownKeys(prototype)) {
    const value: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    if (name !== 'constructor' && typeof value === 'function') yield [name, value as () => unknown];
  }
}

/** All locked methods of an object, inherited and overridden ones too. */
export function* lockedMethodsOf(instance: object): Generator<LockedMethod> {
  for (const prototype of prototypesOf(Object.getPrototypeOf(instance) as object | null)) {
    for (const [, method] of ownMethods(prototype)) {
      const locked = lockedMethodOf(method);
      if (locked !== undefined) yield locked;
    }
  }
}

/** Methods that override a locked one without being locked, and without calling it, and the decorator of that. */
export function* unlockedOverrides(
  prototype: object,
): Generator<{ readonly override: string; readonly decorator: string }> {
  const overrides = new Map<string | symbol, string>();
  for (const each of prototypesOf(prototype)) {
    for (const [name, method] of ownMethods(each)) {
      const override = overrides.get(name);
      const locked = lockedMethodOf(method);
      if (locked === undefined) {
        const callsSuper = /\bsuper\b/.test(Function.prototype.toString.call(method));
        if (!callsSuper && override === undefined)
          overrides.set(name, `${each.constructor.name}.${String(name)}`);
      } else {
        if (override !== undefined) {
          const { called: decorator } = locked.decorator;
          yield {
            override: `${override} overrides ${each.constructor.name}.${String(name)}`,
            decorator,
          };
        }
        overrides.delete(name);
      }
    }
  }
}
