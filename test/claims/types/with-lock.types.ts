/*
 * What `@WithLock` accepts and refuses at compile time. Nothing here runs. Each `@ts-expect-error` names words of the message
 * that it expects; types.spec.ts holds the compiler to them.
 */
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import {
  applyDecorators,
  Get,
  Injectable,
  Param,
  UseGuards,
  type CanActivate,
} from '@nestjs/common';
import { BehaviorSubject, EMPTY, Observable, of } from 'rxjs';
import type { WithLockOptions } from '../../../lib/nest/methods/method-options.js';
import type { WithLock as WithLockType } from '../../../lib/nest/methods/with-lock.types.js';

declare const WithLock: WithLockType;

interface Order {
  readonly id: string;
  readonly lines: readonly string[];
}

declare class Query<T> implements PromiseLike<T> {
  readonly then: Promise<T>['then'];
  where(condition: string): this;
}

declare class Task<T> extends Promise<T> {
  cancel(): void;
}

class Guard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

export class Keys {
  @WithLock('report')
  async template(): Promise<void> {}

  @WithLock(['account:<from>', 'account:<to>'])
  async list(_from: string, _to: string): Promise<void> {}

  @WithLock((orderId: string) => `order:${orderId}`)
  async fewerParameters(_orderId: string, _amount: number): Promise<void> {}

  @WithLock((orderId: string, amount: number) => `order:${orderId}:${String(amount)}`)
  async allParameters(_orderId: string, _amount: number): Promise<void> {}

  @WithLock(() => 'report')
  async noParameters(_orderId: string): Promise<void> {}

  @WithLock((from: string, to: string) => [from, to])
  async listFunction(_from: string, _to: string): Promise<void> {}

  @WithLock((order: { readonly id: string }) => `order:${order.id}`)
  async widerParameter(_order: Order): Promise<void> {}

  @WithLock((_: unknown, id: string) => `order:${id}`)
  async secondParameter(_request: object, _id: string): Promise<void> {}

  @WithLock((id: string, version?: number) => `order:${id}:${String(version)}`)
  async optionalParameter(_id: string, _version?: number): Promise<void> {}

  @WithLock((id: string, version: number) => `order:${id}:${String(version)}`)
  async defaultOfParameterIsNotSeen(_id: string, _version: number): Promise<void> {}

  @WithLock((...ids: string[]) => ids)
  async restParameter(..._ids: string[]): Promise<void> {}

  @WithLock((first: string) => first)
  async firstOfRest(first: string, ...rest: number[]): Promise<number> {
    return first.length + rest.length;
  }

  // @ts-expect-error does not fit the method
  @WithLock((id: string, amount: number) => `order:${id}:${String(amount)}`)
  async tooManyParameters(_id: string): Promise<void> {}

  // @ts-expect-error does not fit the method
  @WithLock((id: number) => `order:${String(id)}`)
  async wrongType(_id: string): Promise<void> {}

  // @ts-expect-error does not fit the method
  @WithLock((version: number) => `order:${String(version)}`)
  async undefinedIsNotHandled(_version?: number): Promise<void> {}

  // @ts-expect-error annotate its parameters
  @WithLock((id) => `order:${String(id)}`)
  async notAnnotated(_id: string): Promise<void> {}

  // @ts-expect-error does not fit the method
  @WithLock(function (this: { readonly name: string }, id: string) {
    return `${this.name}:${id}`;
  })
  async noSuchThis(_id: string): Promise<void> {}

  // @ts-expect-error Source has 0 element(s) but target requires 1
  @WithLock([])
  async emptyList(): Promise<void> {}

  // @ts-expect-error Type 'number' is not assignable to type 'LockKeys'
  @WithLock((id: number) => id)
  async notAKey(_id: number): Promise<void> {}

  // @ts-expect-error Type 'Promise<string>' is not assignable to type 'LockKeys'
  @WithLock(async (id: string) => id)
  async asyncKey(_id: string): Promise<void> {}
}

export class Methods {
  @WithLock('k')
  async generic<T>(value: T): Promise<T> {
    return value;
  }

  @WithLock((order: Order) => order.id)
  async constrained<T extends Order>(order: T): Promise<T> {
    return order;
  }

  // @ts-expect-error does not fit the method
  @WithLock((id: string) => id)
  async genericIsNotAString<T>(value: T): Promise<T> {
    return value;
  }

  @WithLock((id: string) => id)
  async thisParameter(this: Methods, _id: string): Promise<void> {}

  @WithLock('k')
  async fluent(): Promise<this> {
    return this;
  }

  @WithLock((id: string) => id)
  private async hidden(_id: string): Promise<void> {}

  @WithLock((id: string) => id)
  protected async inherited(id: string): Promise<void> {
    await this.hidden(id);
  }

  overloaded(id: string): Promise<string>;
  overloaded(id: number): Promise<number>;
  @WithLock((id: string | number) => String(id))
  async overloaded(id: string | number): Promise<string | number> {
    return id;
  }

  @WithLock('k')
  query(): Query<number> {
    return new Query();
  }

  @WithLock('k', { onLocked: () => 0 })
  task(): Task<number> {
    return new Task(() => undefined);
  }

  @WithLock('k')
  async either(): Promise<string | number> {
    return 1;
  }

  @WithLock('k')
  eitherPromise(): Promise<string> | Promise<number> {
    return Promise.resolve(1);
  }

  /** Nothing is known, so the wrapper looks at what comes. */
  @WithLock('k')
  untyped(): any {
    return Promise.resolve(1);
  }

  @WithLock('k')
  async *generator(): AsyncGenerator<number, string, boolean> {
    return (yield 1) ? 'a' : 'b';
  }

  @WithLock('k')
  async *inferredGenerator() {
    yield 1;
  }

  @WithLock('k')
  async ['computed name'](): Promise<void> {}

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  synchronous(): number {
    return 1;
  }

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  nothing(): void {}

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  sometimes(now: boolean): number | Promise<number> {
    return now ? 1 : Promise.resolve(1);
  }

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  unknown(): unknown {
    return Promise.resolve(1);
  }

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  throws(): never {
    throw new Error('never returns');
  }

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  *syncGenerator(): Generator<number> {
    yield 1;
  }

  // @ts-expect-error make the method non-static
  @WithLock('k')
  static async shared(): Promise<void> {}

  // @ts-expect-error can only be applied to methods
  @WithLock('k')
  get size(): number {
    return Date.now();
  }

  // @ts-expect-error can only be applied to methods
  @WithLock('k')
  set size(_size: number) {}

  // @ts-expect-error must always return a Promise
  @WithLock('k')
  get anything(): any {
    return Date.now();
  }

  // @ts-expect-error can only be applied to methods
  @WithLock('k')
  get sometimesCallable(): number | (() => Promise<void>) {
    return Date.now();
  }

  // @ts-expect-error the decorator expects 3
  @WithLock('k')
  property = async (): Promise<void> => {};

  // @ts-expect-error can only be applied to methods
  async parameter(@WithLock('k') _id: string): Promise<void> {}
}

// @ts-expect-error the decorator expects 3
@WithLock('k')
export class Whole {}

/** A constructor that nobody may call makes no difference. */
export class Singleton {
  private constructor() {}

  // @ts-expect-error make the method non-static
  @WithLock('k')
  static async get(): Promise<Singleton> {
    return new Singleton();
  }
}

export abstract class Repository<T> extends EventEmitter {
  @WithLock((id: string) => id, { onLocked: 'skip' })
  async find(_id: string): Promise<T | undefined> {
    return undefined;
  }

  @WithLock('k', { onLocked: () => null })
  async findOrNull(): Promise<T | null> {
    return null;
  }

  // @ts-expect-error answers undefined
  @WithLock('k', { onLocked: 'skip' })
  async get(value: T): Promise<T> {
    return value;
  }

  @WithLock('k', { onLocked: 'replace', replaceWait: '5s' })
  async latest(value: T): Promise<T> {
    return value;
  }

  @WithLock('k', { returns: 'observable', onLocked: 'replace' })
  latestOnes(): Observable<T> {
    return EMPTY;
  }

  @WithLock('k', { returns: 'observable', onLocked: 'skip' })
  watch(): Observable<T> {
    return EMPTY;
  }

  // @ts-expect-error make the method non-static
  @WithLock('k')
  static async shared(): Promise<void> {}
}

export class Returns {
  @WithLock('k', { returns: 'promise' })
  async promise(): Promise<void> {}

  @WithLock('k', { returns: 'observable' })
  observable(): Observable<number> {
    return of(1);
  }

  @WithLock('k', { returns: 'observable' })
  subject(): BehaviorSubject<number> {
    return new BehaviorSubject(1);
  }

  @WithLock('k', { returns: 'iterable' })
  iterable(): AsyncIterable<number> {
    return this.generator();
  }

  @WithLock('k', { returns: 'iterable' })
  readable(): Readable {
    return Readable.from([]);
  }

  @WithLock('k', { returns: 'iterable' })
  async *generator(): AsyncGenerator<number> {
    yield 1;
  }

  // @ts-expect-error add the option returns: 'observable'
  @WithLock('k')
  undeclaredObservable(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error add the option returns: 'observable'
  @WithLock('k', { returns: 'promise' })
  observableAsPromise(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error add the option returns: 'iterable'
  @WithLock('k')
  undeclaredIterable(): AsyncIterable<number> {
    return this.generator();
  }

  // @ts-expect-error returns: 'observable' is for methods that return an rxjs Observable
  @WithLock('k', { returns: 'observable' })
  async promiseAsObservable(): Promise<void> {}

  // @ts-expect-error returns: 'observable' is for methods that return an rxjs Observable
  @WithLock('k', { returns: 'observable' })
  async promiseOfObservable(): Promise<Observable<number>> {
    return of(1);
  }

  // @ts-expect-error returns: 'observable' is for methods that return an rxjs Observable
  @WithLock('k', { returns: 'observable' })
  sometimesObservable(): Observable<number> | Promise<number> {
    return of(1);
  }

  // @ts-expect-error returns: 'iterable' is for methods that return an async iterable
  @WithLock('k', { returns: 'iterable' })
  async promiseAsIterable(): Promise<void> {}

  // @ts-expect-error returns: 'iterable' is for methods that return an async iterable
  @WithLock('k', { returns: 'iterable' })
  syncIterable(): Iterable<number> {
    return [];
  }
}

export class OnLocked {
  @WithLock('k', { onLocked: 'throw' })
  async throws(): Promise<number> {
    return 1;
  }

  @WithLock('k', { onLocked: 'skip' })
  async nothing(): Promise<void> {}

  @WithLock('k', { onLocked: 'skip' })
  async maybe(): Promise<number | undefined> {
    return 1;
  }

  @WithLock('k', { onLocked: 'skip' })
  untyped(): any {
    return Promise.resolve(1);
  }

  @WithLock('k', {
    onLocked: ({ retryAfterMs, keys, args, error }) =>
      retryAfterMs + keys.length + args.length + error.waitedMs,
  })
  async contextIsTyped(): Promise<number> {
    return 1;
  }

  @WithLock('k', { onLocked: async () => 0 })
  async asyncFallback(): Promise<number> {
    return 1;
  }

  @WithLock('k', { onLocked: ({ keys }) => console.log(keys) })
  async onlyLogs(): Promise<void> {}

  @WithLock('k', { onLocked: () => 'busy' as const })
  async literal(): Promise<'busy' | 'done'> {
    return 'done';
  }

  @WithLock('k', {
    onLocked: ({ error }) => {
      throw new Error('busy', { cause: error });
    },
  })
  async otherError(): Promise<number> {
    return 1;
  }

  @WithLock('k', { onLocked: () => Readable.from([]) })
  async *anyGenerator(): AsyncGenerator<number> {}

  // @ts-expect-error answers undefined
  @WithLock('k', { onLocked: 'skip' })
  async always(): Promise<number> {
    return 1;
  }

  // @ts-expect-error answers undefined
  @WithLock('k', { onLocked: 'skip' })
  async nullIsNotUndefined(): Promise<number | null> {
    return null;
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { onLocked: () => 'busy' })
  async wrongFallback(): Promise<number> {
    return 1;
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { onLocked: async () => 'busy' })
  async wrongAsyncFallback(): Promise<number> {
    return 1;
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { onLocked: () => undefined })
  async missingFallback(): Promise<number> {
    return 1;
  }

  // @ts-expect-error is not assignable to type
  @WithLock('k', { onLocked: 'ignore' })
  async noSuchWord(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { onLocked: (text: string) => text })
  async wrongContext(): Promise<string> {
    return '';
  }

  @WithLock('k', { returns: 'observable', onLocked: 'skip' })
  emptyObservable(): Observable<number> {
    return of(1);
  }

  @WithLock('k', { returns: 'observable', onLocked: () => 0 })
  valueForObservable(): Observable<number> {
    return of(1);
  }

  @WithLock('k', { returns: 'observable', onLocked: ({ retryAfterMs }) => of(retryAfterMs) })
  observableForObservable(): BehaviorSubject<number> {
    return new BehaviorSubject(1);
  }

  @WithLock('k', { returns: 'observable', onLocked: () => EMPTY })
  neverForObservable(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { returns: 'observable', onLocked: () => of('busy') })
  wrongObservable(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { returns: 'observable', onLocked: () => 'busy' })
  wrongSubject(): BehaviorSubject<number> {
    return new BehaviorSubject(1);
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { returns: 'observable', onLocked: async () => 0 })
  promiseForObservable(): Observable<number> {
    return of(1);
  }

  @WithLock('k', { returns: 'iterable', onLocked: 'skip' })
  emptyIterable(): AsyncIterable<number> {
    return this.numbers();
  }

  @WithLock('k', {
    returns: 'iterable',
    onLocked: async function* ({ retryAfterMs }) {
      yield retryAfterMs;
    },
  })
  iterableForIterable(): AsyncIterable<number> {
    return this.numbers();
  }

  @WithLock('k', { onLocked: 'skip' })
  async *numbers(): AsyncGenerator<number> {
    yield 1;
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { onLocked: () => [1] })
  async *syncIterableForGenerator(): AsyncGenerator<number> {
    yield 1;
  }

  // @ts-expect-error does not fit the method's result
  @WithLock('k', { returns: 'iterable', onLocked: () => 0 })
  valueForIterable(): AsyncIterable<number> {
    return this.numbers();
  }
}

const shared = { ttl: '5s', wait: 1_000 } satisfies WithLockOptions;
const stream = { returns: 'observable', onLocked: 'skip' } satisfies WithLockOptions;
const annotated: WithLockOptions = { returns: 'observable' };

export class Options {
  @WithLock('k', {
    ttl: '30s',
    wait: '5 minutes',
    autoExtend: false,
    reentrant: false,
    maxHold: 60_000,
    instance: Symbol('second'),
  })
  async all(): Promise<void> {}

  @WithLock('k', { mode: 'shared' })
  async read(): Promise<void> {}

  @WithLock('k', { mode: 'exclusive' })
  async write(): Promise<void> {}

  @WithLock('k', { limit: 5, onLocked: 'skip' })
  async limited(): Promise<void> {}

  @WithLock('k', { minHold: '1s', release: 'on-expiry', wait: Infinity })
  async held(): Promise<void> {}

  @WithLock('k', {})
  async none(): Promise<void> {}

  @WithLock('k', shared)
  async declared(): Promise<void> {}

  @WithLock('k', { ...shared, onLocked: 'skip' })
  async spread(): Promise<void> {}

  @WithLock('k', stream)
  declaredStream(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error declare the options with 'satisfies WithLockOptions'
  @WithLock('k', annotated)
  outOfSight(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error does not fit the method
  @WithLock((id: number) => String(id), { onLocked: 'skip' })
  oneProblemAtATime(_id: string): string {
    return '';
  }

  // @ts-expect-error has no option 'retires'
  @WithLock('k', { ttl: '5s', retires: 3 })
  async misspelt(): Promise<void> {}

  // @ts-expect-error 'tll' does not exist in type 'KnownOptions'
  @WithLock('k', { tll: '5s' })
  async misspeltAlone(): Promise<void> {}

  // @ts-expect-error Type '5000' has no properties in common with type 'KnownOptions'
  @WithLock('k', 5_000)
  async noOptions(): Promise<void> {}

  // @ts-expect-error Did you mean '"observable"'?
  @WithLock('k', { returns: 'observabel' })
  misspeltKind(): Observable<number> {
    return of(1);
  }

  // @ts-expect-error is not assignable to type
  @WithLock('k', { ttl: 'soon' })
  async notADuration(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { mode: 'write' })
  async notAMode(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { limit: '5' })
  async notANumber(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { wait: 'always' })
  async notAWait(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { minHold: Infinity.toString() })
  async notAHold(): Promise<void> {}
}

const half = { limit: 10, places: 5 } satisfies WithLockOptions;

export class Places {
  readonly weight = 3;

  @WithLock('k', { limit: 10, places: 3 })
  async constant(): Promise<void> {}

  @WithLock('k', half)
  async declared(): Promise<void> {}

  @WithLock('k', { limit: 10, places: (order: Order) => order.lines.length })
  async byArgument(_order: Order): Promise<void> {}

  @WithLock('k', { limit: 10, places: (_id: string, amount: number) => amount })
  async bySecondArgument(_id: string, _amount: number): Promise<void> {}

  @WithLock('k', {
    limit: 10,
    places: (order: { readonly lines: readonly string[] }) => order.lines.length,
  })
  async widerParameter(_order: Order): Promise<void> {}

  @WithLock('k', { limit: 10, places: () => 2 })
  async noParameters(_id: string): Promise<void> {}

  @WithLock('k', { limit: 10, places: (...ids: string[]) => ids.length })
  async restParameter(..._ids: string[]): Promise<void> {}

  @WithLock('k', {
    limit: 10,
    places: function (this: Places) {
      return this.weight;
    },
  })
  async ofTheObject(_id: string): Promise<void> {}

  @WithLock('k', { limit: 10, places: (n: number) => n, returns: 'observable' })
  ofAStream(_n: number): Observable<number> {
    return of(1);
  }

  // @ts-expect-error The places function does not fit the method
  @WithLock('k', { limit: 10, places: (weight: number) => weight })
  async wrongParameter(_id: string): Promise<void> {}

  // @ts-expect-error The places function does not fit the method
  @WithLock('k', { limit: 10, places: (_id: string, amount: number) => amount })
  async tooManyParameters(_id: string): Promise<void> {}

  // @ts-expect-error The places function does not fit the method
  @WithLock('k', { limit: 10, places: (weight: number) => weight })
  async undefinedIsNotHandled(_weight?: number): Promise<void> {}

  // @ts-expect-error The places function does not fit the method
  @WithLock('k', {
    limit: 10,
    places: function (this: { readonly other: number }) {
      return this.other;
    },
  })
  async noSuchThis(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { limit: 10, places: (id: string) => id })
  async notANumber(_id: string): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { limit: 10, places: async (amount: number) => amount })
  async asynchronous(_amount: number): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @WithLock('k', { limit: 10, places: '3' })
  async text(): Promise<void> {}
}

@Injectable()
export class WithOtherDecorators {
  @Get(':id')
  @WithLock((id: string) => `order:${id}`)
  @UseGuards(Guard)
  async above(@Param('id') id: string): Promise<string> {
    return id;
  }

  @WithLock('order:<id>')
  @Get(':id')
  async below(@Param('id') id: string): Promise<string> {
    return id;
  }

  @LockedGet()
  async composed(): Promise<void> {}
}

/** `applyDecorators` cannot see the method, so nothing is compared: that has to be said. */
function LockedGet(): MethodDecorator {
  return applyDecorators(Get(), WithLock('k') as MethodDecorator);
}

// @ts-expect-error is not assignable to parameter of type 'ClassDecorator | MethodDecorator | PropertyDecorator'
applyDecorators(WithLock('k'));
