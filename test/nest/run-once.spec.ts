import 'reflect-metadata';
import { Controller, Injectable, Param, ParseIntPipe, Post } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockLostError,
  LockModule,
  LockNotAcquiredError,
  LockNotBoundError,
  LockReentrancyError,
  LockReturnKindError,
  LockService,
  lockKey,
  NonRetryableError,
  RunOnce,
  WithLock,
  LockWorkExhaustedError,
} from 'nestjs-holdfast';
import { of } from 'rxjs';
import { closeApps, startApp } from './module/start-app.js';
import { detailed, detailOf } from '../support/detail.js';
import { RedisServer } from '../support/redis-server.js';
import { closeHttpApps, startHttpApp } from './http-app.js';
import { Gate } from './gate.js';

interface Email {
  readonly id: number;
}

@Injectable()
class Mailer {
  readonly sent: string[] = [];
  gate: Gate | undefined;
  failures = 0;

  constructor(readonly locks: LockService) {}

  @RunOnce('email:<id>', { keepValue: true, attempts: 2, wait: '20s' })
  async send(id: number): Promise<string | undefined> {
    await this.gate?.pass();
    if (this.failures-- > 0) throw new Error('smtp is down');
    const { attempt, isLastAttempt, lock, signal } = this.locks.currentAttempt() ?? {};
    this.sent.push([lock?.keys, attempt, isLastAttempt, signal?.aborted].map(String).join(' '));
    return `receipt ${String(id)}`;
  }

  @RunOnce((email: Email) => lockKey`mail:${email.id}`, { ttl: '250ms', autoExtend: false })
  async slow(_email: Email): Promise<void> {
    const attempt = this.locks.currentAttempt()?.attempt;
    this.sent.push(`begun ${String(attempt)}`);
    if (attempt === 1) await this.gate?.pass();
  }

  @RunOnce('final', { attempts: 5 })
  async final(): Promise<void> {
    throw new NonRetryableError('no such address');
  }

  @RunOnce('impatient', { wait: 0 })
  async impatient(): Promise<void> {
    await this.gate?.pass();
  }

  @RunOnce('stream')
  async stream(): Promise<unknown> {
    return of(1);
  }

  @WithLock('email:<id>')
  async nested(id: number): Promise<void> {
    await this.send(id);
  }
}

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
});

afterEach(async () => {
  await closeApps();
  await closeHttpApps();
});

afterAll(() => server.stop());

/** Of an application of its own. */
async function newMailer(): Promise<Mailer> {
  const imports = [LockModule.forRoot({ redis: server.url })];
  const { app } = await startApp({ imports, providers: [Mailer] });
  return app.get(Mailer);
}

const twoMailers = async (): Promise<[Mailer, Mailer]> => [await newMailer(), await newMailer()];

describe('@RunOnce', () => {
  it('runs the method in one application, and answers its value in all', async () => {
    const [one, other] = await twoMailers();
    const calls = [one.send(42), other.send(42), one.send(42)];
    expect(await Promise.all(calls)).toEqual(Array(3).fill('receipt 42'));
    expect([...one.sent, ...other.sent]).toEqual(['email:42 1 false false']);
    expect(await other.send(43)).toBe('receipt 43');
    expect(one.locks.currentAttempt()).toBeUndefined();
  });

  it('rejects with what the method throws, and lets the next call try', async () => {
    const [one, other] = await twoMailers();
    one.failures = 1;
    await expect(one.send(42)).rejects.toThrow('smtp is down');
    expect(await other.send(42)).toBe('receipt 42');
    expect(other.sent).toEqual(['email:42 2 true false']);
  });

  it('rejects with LockWorkExhaustedError after the last attempt', async () => {
    const [one, other] = await twoMailers();
    one.failures = 2;
    await expect(one.send(42)).rejects.toThrow('smtp is down');
    await expect(one.send(42)).rejects.toThrow('smtp is down');
    const error: unknown = await other.send(42).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockWorkExhaustedError);
    expect(error).toMatchObject({
      keys: ['email:42'],
      attempts: 2,
      lastError: 'smtp is down',
      detail:
        'The work "email:42" is not tried any more, after 2 attempts. The last one ended with: smtp is down',
    });
  });

  it('rejects with LockWorkExhaustedError after a NonRetryableError', async () => {
    const [one, other] = await twoMailers();
    await expect(one.final()).rejects.toBeInstanceOf(NonRetryableError);
    await expect(other.final()).rejects.toMatchObject({ code: 'WORK_EXHAUSTED', attempts: 1 });
  });

  it('rejects with LockNotAcquiredError when somebody else was at it for as long as it waited', async () => {
    const [one, other] = await twoMailers();
    one.gate = new Gate();
    const working = one.impatient();
    await one.gate.reached;
    await expect(other.impatient()).rejects.toBeInstanceOf(LockNotAcquiredError);
    one.gate.open();
    await working;
  });

  it('rejects with LockLostError when another attempt began while it ran', async () => {
    const [one, other] = await twoMailers();
    one.gate = new Gate();
    const slow = one.slow({ id: 7 });
    await one.gate.reached;
    await other.slow({ id: 7 });
    one.gate.open();
    await expect(slow).rejects.toBeInstanceOf(LockLostError);
    expect(other.sent).toEqual(['begun 2']);
  });

  it('refuses to be called inside a section that holds its key', async () => {
    const mailer = await newMailer();
    await expect(mailer.nested(42)).rejects.toBeInstanceOf(LockReentrancyError);
    expect(mailer.sent).toEqual([]);
    expect(await mailer.send(42)).toBe('receipt 42');
  });

  it('refuses a stream, which would go on when the work is marked as done', async () => {
    const mailer = await newMailer();
    await expect(mailer.stream()).rejects.toBeInstanceOf(LockReturnKindError);
    await expect(mailer.stream()).rejects.toThrow(
      detailed(
        'Mailer.stream did not return a Promise of a value. It gave an Observable: consume it inside the method.',
      ),
    );
  });

  it('does not run the method of an object that has no service', async () => {
    const mailer = new Mailer(undefined as never);
    const refusal: unknown = await mailer.send(42).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LockNotBoundError);
    expect(detailOf(refusal)).toMatch(/^Mailer\.send has @RunOnce, but/);
    expect(mailer.sent).toEqual([]);
  });

  it('says at the start which override has lost it', async () => {
    class Special extends Mailer {
      override async final(): Promise<void> {}
    }
    const { warnings } = await startApp({
      imports: [LockModule.forRoot({ redis: server.url })],
      providers: [
        {
          provide: Mailer,
          useFactory: (locks: LockService) => new Special(locks),
          inject: [LockService],
        },
      ],
    });
    expect(warnings).toEqual([
      'Special.final overrides Mailer.final, which has @RunOnce, without a lock of its own. Repeat @RunOnce there if the override needs the lock.',
    ]);
  });
});

describe('@RunOnce on a class', () => {
  const define =
    (decorate: () => MethodDecorator, method: unknown = async () => undefined) =>
    () => {
      class Jobs {}
      Object.defineProperty(Jobs.prototype, 'work', { value: method, configurable: true });
      const descriptor = Object.getOwnPropertyDescriptor(Jobs.prototype, 'work')!;
      decorate()(Jobs.prototype, 'work', descriptor);
    };
  const once = (key: unknown, options?: object): (() => MethodDecorator) =>
    (() => RunOnce(key as string, options as never)) as unknown as () => MethodDecorator;

  it.each([
    [
      'a misspelt option',
      once('a', { attempt: 1 }),
      '@RunOnce on Jobs.work has no option "attempt". Did you mean "attempts"? Its options are attempts, keepDone, keepValue, ttl, autoExtend, maxHold, wait, instance.',
    ],
    ['reentrant', once('a', { reentrant: true }), 'has no option "reentrant"'],
    [
      'a mode',
      once('a', { mode: 'shared' }),
      'has no option "mode". The lock of such work is exclusive, and free when the attempt is over. Its options are',
    ],
    [
      'no attempts',
      once('a', { attempts: 0 }),
      '@RunOnce on Jobs.work: Option "attempts" must be a whole number from 1',
    ],
    ['a wrong ttl', once('a', { ttl: 1 }), '@RunOnce on Jobs.work: Option "ttl"'],
    ['several keys', once(['a', 'b']), '@RunOnce on Jobs.work needs one key'],
    ['an empty key', once(''), '@RunOnce on Jobs.work: the key "" is empty'],
    ['an unknown parameter', once('a:<b>'), '@RunOnce on Jobs.work: the key "a:<b>"'],
  ])('is refused with %s when the class is defined', (_, decorate, message) => {
    expect(define(decorate)).toThrow(LockConfigurationError);
    expect(define(decorate)).toThrow(message);
  });

  it('is refused on a generator, on what is no method, and beside another lock', () => {
    expect(define(once('a'), async function* () {})).toThrow('a generator cannot be done once');
    expect(define(once('a'), 7)).toThrow('@RunOnce on Jobs.work is on a property');
    expect(() => {
      class Twice {
        @WithLock('b')
        @RunOnce('a')
        async work(): Promise<void> {}
      }
      return Twice;
    }).toThrow('Twice.work has @RunOnce and @WithLock');
  });
});

describe('@RunOnce on a handler', () => {
  const attempts: number[] = [];

  @Controller('emails')
  class Emails {
    constructor(private readonly locks: LockService) {}

    @Post(':id/raw')
    @RunOnce('email:<request.params.id>', { attempts: 1, keepValue: true })
    async byRequest(@Param('id') id: string): Promise<object | undefined> {
      return this.#work(Number(id));
    }

    @Post(':id')
    @RunOnce('email:<id>', { attempts: 1, keepValue: true })
    async byArgument(@Param('id', ParseIntPipe) id: number): Promise<object | undefined> {
      return this.#work(id);
    }

    async #work(id: number): Promise<object> {
      attempts.push(this.locks.currentAttempt()?.attempt ?? NaN);
      if (id > 10) throw new Error('cannot be sent');
      return { sent: id };
    }
  }

  it.each(['/emails/1', '/emails/2/raw'])('answers POST %s with the one value', async (path) => {
    attempts.length = 0;
    const http = await startHttpApp({ controllers: [Emails] });
    const answers = await Promise.all([http.post(path), http.post(path)]);
    const id = Number(/\d/.exec(path));
    expect(answers.map(({ status, body }) => ({ status, body }))).toEqual(
      Array(2).fill({ status: 201, body: { sent: id } }),
    );
    expect(attempts).toEqual([1]);
  });

  it.each(['', '/raw'])(
    'answers by the record while its key is held: POST /emails/1%s',
    async (end) => {
      const options = { store: 'memory', wait: 0 } as const;
      const http = await startHttpApp({ controllers: [Emails] }, { options });
      const post = async (id: number): Promise<unknown> => {
        const { status, body, retryAfter } = await http.post(`/emails/${String(id)}${end}`);
        return [status, body.sent ?? body.code, retryAfter !== null];
      };
      expect(await post(1)).toEqual([201, 1, false]);
      expect(await post(11)).toEqual([500, undefined, false]);
      expect(await post(11)).toEqual([409, 'WORK_EXHAUSTED', false]);
      const held = await http.locks.acquire(['email:1', 'email:2', 'email:11']);
      expect(await post(1)).toEqual([201, 1, false]);
      expect(await post(2)).toEqual([409, 'LOCK_NOT_ACQUIRED', true]);
      expect(await post(11)).toEqual([409, 'WORK_EXHAUSTED', false]);
      await held.release();
    },
  );

  it('answers the value of work that is recorded as done, though its lock was lost', async () => {
    @Controller('lost')
    class Lost {
      @Post('raw/:id')
      @RunOnce('lost:<request.params.id>', { keepValue: true })
      async byRequest(@Param('id') id: string): Promise<object | undefined> {
        return loseAndSend(id);
      }

      @Post(':id')
      @RunOnce('lost:<id>', { keepValue: true })
      async byArgument(@Param('id') id: string): Promise<object | undefined> {
        return loseAndSend(id);
      }
    }
    const { post, locks } = await startHttpApp({ controllers: [Lost] });
    const loseAndSend = (id: string): object => {
      attempts.push(1);
      locks.lose(`lost:${id}`);
      return { sent: id };
    };
    attempts.length = 0;
    for (const path of ['/lost/1', '/lost/1', '/lost/raw/2', '/lost/raw/2'])
      expect(await post(path)).toMatchObject({ status: 201, body: { sent: path.slice(-1) } });
    expect(attempts).toHaveLength(2);
  });

  it('answers 409 without Retry-After for work that is not tried any more', async () => {
    const http = await startHttpApp({ controllers: [Emails] });
    expect((await http.post('/emails/11')).status).toBe(500);
    const { status, body, retryAfter } = await http.post('/emails/11');
    expect({ status, body }).toEqual({
      status: 409,
      body: {
        statusCode: 409,
        message: 'This has been tried without success, and is not tried again.',
        error: 'Conflict',
        code: 'WORK_EXHAUSTED',
      },
    });
    expect(retryAfter).toBeNull();
  });
});
