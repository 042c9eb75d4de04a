import {
  Controller,
  Get,
  Inject,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  RequestTimeoutException,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type INestApplication,
  type NestInterceptor,
} from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockInterceptor, LockService, WithLock } from 'nestjs-holdfast';
import {
  catchError,
  concat,
  defer,
  from,
  merge,
  retry,
  Subject,
  switchMap,
  takeUntil,
  throwError,
  timeout,
  TimeoutError,
  timer,
  type Observable,
} from 'rxjs';
import { eventually } from '../support/eventually.js';
import { Gate } from './gate.js';
import { ADAPTERS, closeHttpApps, CONFLICT, startHttpApp, type HttpApp } from './http-app.js';

let gate: Gate;
let calls: string[];
let runningAtOnce: number;
let mostAtOnce: number;
let cut: Subject<void>;

/** Tells whether the key is locked when the handler begins and after it has answered. */
@Injectable()
class Witness implements NestInterceptor {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  intercept(context: ExecutionContext, next: CallHandler) {
    const name = `${this.constructor.name} of ${context.getHandler().name}`;
    const note = async (when: string): Promise<void> => {
      const inside = this.locks.current() !== undefined;
      const { held } = await this.locks.inspect('a:1');
      calls.push(`${name} ${when}: ${held ? 'locked' : 'free'}${inside ? ', inside' : ''}`);
    };
    return defer(() => note('before')).pipe(
      switchMap(() => next.handle()),
      switchMap((value) => defer(() => note('after').then(() => value as unknown))),
    );
  }
}
class Above extends Witness {}
class Below extends Witness {}
class Whole extends Witness {}

class Retry implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(retry(2));
  }
}

class Timeout implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(
      timeout(100),
      catchError((error: unknown) =>
        throwError(() => (error instanceof TimeoutError ? new RequestTimeoutException() : error)),
      ),
    );
  }
}

/** Ends while the handler is being called. */
class Cut implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(takeUntil(cut));
  }
}

/** Calls again although the call before still works. */
class ImpatientRetry implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(timeout(60), retry(2));
  }
}

/** Calls a second time, without a limit, when the first call takes long. */
class Fallback implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    const again = (): Observable<unknown> => {
      calls.push('again');
      return next.handle();
    };
    return next.handle().pipe(timeout({ first: 60, with: again }));
  }
}

/** Calls a second time beside the first call, once the test lets it. */
class Hedge implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    const second = defer(() => gate.pass()).pipe(
      switchMap(() => {
        calls.push('again');
        return next.handle();
      }),
    );
    return merge(next.handle(), second);
  }
}

/** Asks again when the lock was refused, once the test lets it. */
class Persistent implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(retry({ count: 1, delay: () => gate.pass() }));
  }
}

/** Answers itself, without the handler. */
class Cached implements NestInterceptor {
  intercept() {
    return timer(1);
  }
}

async function flaky(): Promise<number> {
  runningAtOnce += 1;
  mostAtOnce = Math.max(mostAtOnce, runningAtOnce);
  await new Promise(setImmediate);
  runningAtOnce -= 1;
  gate.visits += 1;
  if (gate.visits < 3) throw new Error(`try ${gate.visits}`);
  return gate.visits;
}

async function slow(): Promise<number> {
  runningAtOnce += 1;
  mostAtOnce = Math.max(mostAtOnce, runningAtOnce);
  await gate.pass();
  runningAtOnce -= 1;
  return gate.visits;
}

@Controller()
@UseInterceptors(Whole)
class Watched {
  @Post('raw/:id')
  @UseInterceptors(Above)
  @WithLock('a:<request.params.id>')
  @UseInterceptors(Below)
  async raw(): Promise<void> {
    calls.push('raw');
  }

  @Post('named/:id')
  @UseInterceptors(Above)
  @WithLock('a:<_id>')
  @UseInterceptors(Below)
  async named(@Param('id') _id: string): Promise<void> {
    calls.push('named');
  }
}

@Controller()
class Calls {
  @Inject(LockService) private readonly locks!: LockService;

  @Post('retry/named/:id')
  @WithLock('a:<_id>')
  @UseInterceptors(Retry)
  retryNamed(@Param('id') _id: string): Promise<number> {
    return flaky();
  }

  @Post('retry/raw/:id')
  @WithLock('a:<request.params.id>')
  @UseInterceptors(Retry)
  retryRaw(): Promise<number> {
    return flaky();
  }

  @Post('persistent/:id')
  @WithLock('a:<id>')
  @UseInterceptors(Persistent)
  async persistent(@Param('id') id: string): Promise<string> {
    return `${id} ${String(this.locks.current()?.keys)}`;
  }

  @Post('impatient/named/:id')
  @WithLock('a:<_id>')
  @UseInterceptors(ImpatientRetry)
  impatientNamed(@Param('id') _id: string): Promise<number> {
    return slow();
  }

  @Post('impatient/raw/:id')
  @WithLock('a:<request.params.id>')
  @UseInterceptors(ImpatientRetry)
  impatientRaw(): Promise<number> {
    return slow();
  }

  @Post('impatient/observable/:id')
  @WithLock('a:<_id>', { returns: 'observable' })
  @UseInterceptors(ImpatientRetry)
  impatientObservable(@Param('id') _id: string): Observable<number> {
    return concat([0], defer(slow));
  }

  @Post('timeout/named/:id')
  @WithLock('a:<_id>')
  @UseInterceptors(Timeout)
  async timeoutNamed(@Param('id') _id: string): Promise<void> {
    await gate.pass();
  }

  @Post('timeout/raw/:id')
  @WithLock('a:<request.params.id>')
  @UseInterceptors(Timeout)
  async timeoutRaw(): Promise<void> {
    await gate.pass();
  }

  @Post('timeout/deferred/:id')
  @WithLock('a:<_id>', { returns: 'observable' })
  @UseInterceptors(Timeout)
  timeoutDeferred(@Param('id') _id: string): Observable<number> {
    return defer(slow);
  }

  @Post('timeout/begun/:id')
  @WithLock('a:<request.params.id>', { returns: 'observable' })
  @UseInterceptors(Timeout)
  timeoutBegun(): Observable<number> {
    return from(slow());
  }

  @Post('cut/:id')
  @WithLock('a:<request.params.id>', { returns: 'observable' })
  @UseInterceptors(Cut)
  cut(): Observable<number> {
    const work = slow();
    cut.next();
    return from(work);
  }

  @Post('timeout/waiting/:id')
  @WithLock('a:<_id>', { wait: '20s' })
  @UseInterceptors(Timeout)
  async timeoutWaiting(@Param('id') _id: string): Promise<void> {
    calls.push('ran');
  }

  @Post('cached/:id')
  @WithLock('a:<request.params.id>')
  @UseInterceptors(Cached)
  async cached(): Promise<void> {
    calls.push('ran');
  }

  @Post('twice/:id')
  @UseInterceptors(LockInterceptor)
  @WithLock('a:<request.params.id>', { reentrant: false })
  async twice(@Param('id') id: string): Promise<string> {
    return `${id} ${this.locks.current()?.keys.join() ?? 'nothing'}`;
  }

  @Post('recursive/:id')
  @WithLock('a:<id>')
  async recursive(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
    const held = await Promise.all(
      [1, 2, 3].map(async (each) => (await this.locks.inspect(`a:${each}`)).held),
    );
    return id === 3 ? held : this.recursive(id + 1);
  }

  @Post('other/:id')
  @WithLock('b:<id>')
  async other(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
    return this.recursive(id);
  }

  @Post('plain')
  async plain(): Promise<unknown> {
    return this.recursive(3);
  }

  @Post('again/:id')
  @WithLock('a:<id>')
  async again(@Param('id') id: string): Promise<string> {
    calls.push(`begin ${id}`);
    if (calls.length < 4) await Promise.all([this.again(id), this.again(id)]);
    calls.push('end');
    return id;
  }

  @Post('quick/named/:id')
  @WithLock('a:<_id>')
  async quickNamed(@Param('id') _id: string): Promise<void> {}

  @Post('quick/raw/:id')
  @WithLock('a:<request.params.id>')
  async quickRaw(): Promise<void> {}

  @Get('failing/:id')
  @WithLock('a:<_id>')
  async failing(@Param('id') _id: string): Promise<void> {
    throw new Error('a bug');
  }
}

@Controller()
class CalledTwice {
  @Post('fallback/:id')
  @WithLock('a:<_id>', { wait: '20s' })
  @UseInterceptors(Below)
  fallback(@Param('id') _id: string): Promise<number> {
    return slow();
  }

  @Post('hedged/:id')
  @WithLock('a:<request.params.id>', { wait: '20s' })
  @UseInterceptors(Below)
  async hedged(): Promise<void> {}
}

beforeEach(() => {
  gate = new Gate();
  calls = [];
  cut = new Subject();
  runningAtOnce = mostAtOnce = 0;
});
afterEach(closeHttpApps);

describe.each(ADAPTERS)('the lock of a handler, on %s', (adapter) => {
  const start = (configure?: (app: INestApplication) => void): Promise<HttpApp> =>
    startHttpApp(
      { controllers: [Watched, Calls] },
      { adapter, ...(configure !== undefined && { configure }) },
    );

  const calledTwiceBy = (interceptor: NestInterceptor): Promise<HttpApp> =>
    startHttpApp(
      { controllers: [CalledTwice] },
      { adapter, configure: (app) => app.useGlobalInterceptors(interceptor) },
    );

  it.each(['raw', 'named'])(
    'encloses its own interceptors, written above and below, but not those of controller and application (%s)',
    async (kind) => {
      class Global extends Witness {}
      const { post } = await start((app) =>
        app.useGlobalInterceptors(new Global(app.get(LockService))),
      );
      expect((await post(`/${kind}/1`)).status).toBe(201);
      const [before, inside] = kind === 'raw' ? ['locked', ', inside'] : ['free', ''];
      expect(calls).toEqual([
        `Global of ${kind} before: free`,
        `Whole of ${kind} before: free`,
        `Below of ${kind} before: ${before}${inside}`,
        `Above of ${kind} before: ${before}${inside}`,
        kind,
        `Above of ${kind} after: locked${inside}`,
        `Below of ${kind} after: locked${inside}`,
        `Whole of ${kind} after: free`,
        `Global of ${kind} after: free`,
      ]);
    },
  );

  it.each(['named', 'raw'])('stays while an interceptor retries (%s)', async (kind) => {
    const { post, locks } = await start();
    const taken: string[] = [];
    locks.on('acquired', ({ keys }) => taken.push(...keys));
    locks.on('released', ({ keys }) => taken.push(`-${keys.join()}`));
    expect((await post(`/retry/${kind}/1`)).body).toBe(3);
    expect(taken).toEqual(['a:1', '-a:1']);
    expect(mostAtOnce).toBe(1);
  });

  it('is asked for again by an interceptor that retries after a refusal', async () => {
    const { post, locks } = await start();
    const lock = await locks.acquire('a:1');
    const answer = post('/persistent/1');
    await gate.reached;
    await lock.release();
    gate.open();
    expect((await answer).body).toBe('1 a:1');
    expect((await locks.inspect('a:1')).held).toBe(false);
  });

  it.each(['named', 'raw', 'observable'])(
    'lets no retry begin before the call before it has ended (%s)',
    async (kind) => {
      const { post, locks } = await start();
      const released = new Promise((resolve) => locks.on('released', resolve));
      expect((await post(`/impatient/${kind}/1`)).status).toBe(500);
      expect(gate.visits).toBe(1);
      expect((await locks.inspect('a:1')).held).toBe(true);
      gate.open();
      await released;
      expect(mostAtOnce).toBe(1);
      expect(runningAtOnce).toBe(0);
    },
  );

  it('is another one for a call that an outer interceptor makes in place of one that takes long', async () => {
    const { post } = await calledTwiceBy(new Fallback());
    const answer = post('/fallback/1');
    await eventually(() => {
      expect(calls).toHaveLength(3);
    });
    gate.open();
    expect((await answer).status).toBe(201);
    expect(calls).toEqual([
      'Below of fallback before: free',
      'again',
      'Below of fallback before: locked',
      'Below of fallback after: locked',
    ]);
  });

  it('is another one for a call that an outer interceptor makes beside one that waits', async () => {
    const { post, locks } = await calledTwiceBy(new Hedge());
    const lock = await locks.acquire('a:1');
    const answer = post('/hedged/1');
    await gate.reached;
    gate.open();
    await eventually(() => {
      expect(calls).toContain('again');
    });
    await lock.release();
    expect((await answer).status).toBe(201);
    const [before, after] = ['before', 'after'].map(
      (when) => `Below of hedged ${when}: locked, inside`,
    );
    expect(calls).toEqual(['again', before, after, before, after]);
  });

  it.each(['named', 'raw', 'deferred', 'begun'])(
    'outlives a timeout for as long as the work goes on (%s)',
    async (kind) => {
      const { post, locks } = await start();
      const released = new Promise((resolve) => locks.on('released', resolve));
      expect((await post(`/timeout/${kind}/1`)).status).toBe(408);
      expect(await post(`/timeout/${kind}/1`)).toMatchObject({ status: 409, body: CONFLICT });
      gate.open();
      await released;
      expect((await post(`/timeout/${kind}/1`)).status).toBe(201);
      expect(gate.visits).toBe(2);
    },
  );

  it('stays with work that was begun by a call whose Observable nobody wants any more', async () => {
    const { post, locks } = await start();
    const released = new Promise((resolve) => locks.on('released', resolve));
    await post('/cut/1');
    expect((await post('/cut/1')).status).toBe(409);
    expect(runningAtOnce).toBe(1);
    gate.open();
    await released;
    expect(runningAtOnce).toBe(0);
  });

  it('is not waited for, and nothing runs, when nobody waits for the answer any more', async () => {
    const { post, locks } = await start();
    const lock = await locks.acquire('a:1');
    expect((await post('/timeout/waiting/1')).status).toBe(408);
    await lock.release();
    // Whoever still stood in line would get it before us.
    await (await locks.acquire('a:1')).release();
    expect(calls).toEqual([]);
  });

  it('is given back when an interceptor answers in place of the handler', async () => {
    const { post, locks } = await start();
    expect((await post('/cached/1')).status).toBe(201);
    expect((await locks.inspect('a:1')).held).toBe(false);
    expect(calls).toEqual([]);
  });

  it('is given back when a pipe or the handler throws', async () => {
    const { get, post, locks } = await start();
    expect((await post('/recursive/x')).status).toBe(400);
    expect((await get('/failing/1')).status).toBe(500);
    expect((await get('/failing/1')).status).toBe(500);
    expect((await locks.inspect('a:1')).held).toBe(false);
  });

  it('is taken once, even if the application applies the interceptor too', async () => {
    const { post, locks } = await start((app) =>
      app.useGlobalInterceptors(app.get(LockInterceptor, { strict: false })),
    );
    let taken = 0;
    locks.on('acquired', () => (taken += 1));
    expect((await post('/twice/1')).body).toBe('1 a:1');
    expect(taken).toBe(1);
  });

  it('is taken by a handler that is called as a method, by itself too, for the arguments of that call', async () => {
    const { post } = await start();
    expect((await post('/recursive/1')).body).toEqual([true, true, true]);
    expect((await post('/other/2')).body).toEqual([false, true, true]);
    expect((await post('/plain')).body).toEqual([false, false, true]);
  });

  it('lets its holder in again, one call at a time', async () => {
    const { post } = await start();
    expect((await post('/again/1')).status).toBe(201);
    expect(calls.filter((call) => call === 'end')).toHaveLength(calls.length / 2);
  });

  it.each(['quick/named', 'quick/raw'])(
    'is free again when the answer has come: requests in turn are never refused (%s)',
    async (route) => {
      const { post } = await start();
      for (let turn = 0; turn < 50; turn += 1) {
        expect((await post(`/${route}/1`)).status).toBe(201);
      }
    },
  );
});
