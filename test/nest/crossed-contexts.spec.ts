import {
  Controller,
  Get,
  Inject,
  Injectable,
  Param,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockInterceptor, LockService, WithLock } from 'nestjs-holdfast';
import { catchError, EMPTY, from, lastValueFrom, mergeMap, Observable, Subject, tap } from 'rxjs';
import { deferred } from '../support/eventually.js';
import { Gate } from './gate.js';
import { ADAPTERS, closeHttpApps, startHttpApp } from './http-app.js';

let gate: Gate;
/** Resolves when a second request stands in a queue. */
let queued: ReturnType<typeof deferred<void>>;

/** One call at a time: the end of a call starts the next one, in its own async context. */
@Injectable()
class Callbacks implements NestInterceptor {
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;

  intercept(_context: ExecutionContext, next: CallHandler) {
    const result = new Promise<unknown>((resolve, reject) => {
      const end = (): void => {
        this.#isBusy = false;
        this.#waiting.shift()?.();
      };
      const begin = (): void => {
        this.#isBusy = true;
        const work = lastValueFrom(next.handle());
        work.then(end, end);
        work.then(resolve, reject);
      };
      if (this.#isBusy) {
        this.#waiting.push(begin);
        queued.resolve();
      } else begin();
    });
    return from(result);
  }
}

/** The same, with the operators of rxjs. */
@Injectable()
class Merged implements NestInterceptor {
  readonly #calls = new Subject<{ next: CallHandler; results: Subject<unknown> }>();
  #count = 0;

  constructor() {
    const answer = ({ next, results }: { next: CallHandler; results: Subject<unknown> }) =>
      next.handle().pipe(
        tap(results),
        catchError(() => EMPTY),
      );
    this.#calls.pipe(mergeMap(answer, 1)).subscribe();
  }

  intercept(_context: ExecutionContext, next: CallHandler) {
    return new Observable((subscriber) => {
      const results = new Subject<unknown>();
      subscriber.add(results.subscribe(subscriber));
      this.#calls.next({ next, results });
      this.#count += 1;
      if (this.#count === 2) queued.resolve();
    });
  }
}

/** The first request stops in here. */
async function keysInside(locks: LockService): Promise<unknown> {
  const keys = locks.current()?.keys;
  await gate.pass();
  return keys;
}

let later: (() => void) | undefined;

/** Calls the handler where nothing of the request is known. */
@Injectable()
class Later implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return new Observable((subscriber) => {
      later = () => {
        subscriber.add(next.handle().subscribe(subscriber));
      };
      queued.resolve();
    });
  }
}

/** Takes a lock around the handler. */
@Injectable()
class TenantLock implements NestInterceptor {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  intercept(_context: ExecutionContext, next: CallHandler) {
    return from(this.locks.run('tenant', () => lastValueFrom(next.handle())));
  }
}

@Controller('tenant')
class TenantPayments {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  /** Asks for the lock of the interceptor, which it has. */
  async #work(): Promise<unknown> {
    await gate.pass();
    return this.locks.run('tenant', () => this.locks.current()?.keys);
  }

  @Get('callbacks/named/:id')
  @UseInterceptors(Callbacks, TenantLock)
  @WithLock('pay:<_id>')
  callbacksNamed(@Param('id') _id: string) {
    return this.#work();
  }

  @Get('callbacks/raw/:id')
  @UseInterceptors(Callbacks, TenantLock)
  @WithLock('pay:<request.params.id>')
  callbacksRaw() {
    return this.#work();
  }
}

@Controller('plain')
class PlainPayments {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  @Get('named/:id')
  @WithLock('pay:<_id>')
  named(@Param('id') _id: string) {
    return keysInside(this.locks);
  }

  @Get('raw/:id')
  @WithLock('pay:<request.params.id>')
  raw() {
    return keysInside(this.locks);
  }
}

/** Until when the first call works after it has let the next one in. */
let over: Promise<void> | undefined;

/** One call at a time, until the work of a call says that the next one may come. */
@Injectable()
class Turns implements NestInterceptor {
  static readonly waiting: (() => void)[] = [];
  static isBusy = false;

  static leave(): void {
    Turns.isBusy = false;
    Turns.waiting.shift()?.();
  }

  intercept(_context: ExecutionContext, next: CallHandler) {
    return new Observable((subscriber) => {
      const begin = (): void => {
        Turns.isBusy = true;
        subscriber.add(next.handle().subscribe(subscriber));
      };
      if (Turns.isBusy) {
        Turns.waiting.push(begin);
        queued.resolve();
      } else begin();
    });
  }
}

@UseInterceptors(Turns)
@Controller('turns')
class TurnPayments {
  async #work(): Promise<string> {
    const until = over;
    over = undefined;
    await gate.pass();
    Turns.leave();
    await until;
    return 'paid';
  }

  @Get('named/:id')
  @WithLock('pay:<_id>')
  named(@Param('id') _id: string) {
    return this.#work();
  }

  @Get('raw/:id')
  @WithLock('pay:<request.params.id>')
  raw() {
    return this.#work();
  }
}

@Injectable()
class SetUser implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context
      .switchToHttp()
      .getRequest<{ user?: unknown; headers: Record<string, string> }>();
    request.user = { name: request.headers['x-user'] };
    return true;
  }
}

@UseGuards(SetUser)
@Controller()
class Payments {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  @Get('callbacks/named/:id')
  @UseInterceptors(Callbacks)
  @WithLock('<user.name>:<_id>')
  callbacksNamed(@Param('id') _id: string) {
    return keysInside(this.locks);
  }

  @Get('callbacks/raw/:id')
  @WithLock('<user.name>:<request.params.id>')
  @UseInterceptors(Callbacks)
  callbacksRaw() {
    return keysInside(this.locks);
  }

  @Get('merged/named/:id')
  @UseInterceptors(Merged)
  @WithLock('<user.name>:<_id>')
  mergedNamed(@Param('id') _id: string) {
    return keysInside(this.locks);
  }

  @Get('merged/raw/:id')
  @WithLock('<user.name>:<request.params.id>')
  @UseInterceptors(Merged)
  mergedRaw() {
    return keysInside(this.locks);
  }

  @Get('later/named/:id')
  @UseInterceptors(Later)
  @WithLock('<user.name>:<_id>')
  laterNamed(@Param('id') _id: string) {
    return keysInside(this.locks);
  }

  @Get('later/raw/:id')
  @UseInterceptors(Later)
  @WithLock('<user.name>:<request.params.id>')
  laterRaw() {
    return keysInside(this.locks);
  }
}

const as = (user: string): RequestInit => ({ headers: { 'x-user': user } });

beforeEach(() => {
  gate = new Gate();
  queued = deferred();
  later = undefined;
});
afterEach(closeHttpApps);

type Get = Awaited<ReturnType<typeof startHttpApp>>['get'];

/** Lets the first call continue when the second one stands in the queue. Awaits neither of them. */
async function queuedCalls(get: Get, ...paths: readonly [string, string]) {
  const first = get(paths[0]);
  await gate.reached;
  const second = get(paths[1]);
  await queued.promise;
  gate.open();
  return [first, second] as const;
}

describe.each(ADAPTERS)('a handler behind an interceptor, on %s', (adapter) => {
  it.each(['callbacks/named', 'callbacks/raw', 'merged/named', 'merged/raw'])(
    'runs under the lock of its own request, even if the end of another one starts it (%s)',
    async (route) => {
      const { get, locks } = await startHttpApp({ controllers: [Payments] }, { adapter });
      const taken: string[] = [];
      locks.on('acquired', ({ keys }) => taken.push(keys.join()));
      const first = get(`/${route}/1`, as('alice'));
      await gate.reached;
      const second = get(`/${route}/2`, as('bob'));
      await queued.promise;
      gate.open();
      expect((await first).body).toEqual(['alice:1']);
      expect((await second).body).toEqual(['bob:2']);
      expect(taken).toEqual(['alice:1', 'bob:2']);
      expect((await locks.inspect('bob:2')).held).toBe(false);
    },
  );

  it.each(['callbacks/named', 'callbacks/raw'])(
    'is in the lock of an interceptor between (%s)',
    async (route) => {
      const { get } = await startHttpApp({ controllers: [TenantPayments] }, { adapter });
      const [first, second] = await queuedCalls(get, `/tenant/${route}/1`, `/tenant/${route}/2`);
      expect((await first).body).toEqual(['tenant']);
      expect((await second).body).toEqual(['tenant']);
    },
  );

  it.each(['named', 'raw'])(
    'has no lock of another request, whose work lets it in (%s)',
    async (route) => {
      const { get } = await startHttpApp({ controllers: [TurnPayments] }, { adapter });
      const end = deferred();
      over = end.promise;
      const [first, second] = await queuedCalls(get, `/turns/${route}/1`, `/turns/${route}/1`);
      expect((await second).status).toBe(409);
      end.resolve();
      expect((await first).body).toBe('paid');
      Turns.leave();
    },
  );

  it.each(['named', 'raw'])(
    'runs under its own lock behind a queue of an application that applies LockInterceptor (%s)',
    async (route) => {
      const { get } = await startHttpApp(
        {
          controllers: [PlainPayments],
          providers: [
            { provide: APP_INTERCEPTOR, useClass: LockInterceptor },
            { provide: APP_INTERCEPTOR, useClass: Callbacks },
          ],
        },
        { adapter },
      );
      const [first, second] = await queuedCalls(get, `/plain/${route}/1`, `/plain/${route}/2`);
      expect((await first).body).toEqual(['pay:1']);
      expect((await second).body).toEqual(['pay:2']);
    },
  );

  it.each(['later/named', 'later/raw'])(
    'runs under the lock of its request, even if the async context is lost on the way (%s)',
    async (route) => {
      const { get, locks } = await startHttpApp({ controllers: [Payments] }, { adapter });
      gate.open();
      const answer = get(`/${route}/1`, as('bob'));
      await queued.promise;
      later?.();
      expect((await answer).body).toEqual(['bob:1']);
      expect((await locks.inspect('bob:1')).held).toBe(false);
    },
  );
});
