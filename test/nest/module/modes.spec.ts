import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  Get,
  Injectable,
  Param,
  ParseIntPipe,
  type Provider,
  type Type,
} from '@nestjs/common';
import {
  defineLock,
  LockConfigurationError,
  LockModule,
  LockService,
  RunOnce,
  WithLock,
  type AcquireOptions,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { closeHttpApps, startHttpApp } from '../http-app.js';
import { deferred } from '../../support/eventually.js';
import { closeApps, startApp, type StartedApp } from './start-app.js';

const services: LockService[] = [];

afterEach(async () => {
  await closeApps();
  await closeHttpApps();
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
});

function serviceOf(...settings: ConstructorParameters<typeof LockService>): LockService {
  const service = new LockService(...settings);
  services.push(service);
  return service;
}

/** Nothing listens there: what is refused is refused before anybody asks. */
const NOBODY = ['redis://127.0.0.1:1', 'redis://127.0.0.1:2', 'redis://127.0.0.1:3'];

const start = (
  options: LockModuleOptions,
  providers: Provider[],
  controllers: Type[] = [],
): Promise<StartedApp> =>
  startApp({ imports: [LockModule.forRoot(options)], providers, controllers });

describe('the options mode and limit', () => {
  it.each<[string, object, string]>([
    [
      'another mode',
      { mode: 'write' },
      `Option "mode" must be 'exclusive' or 'shared', received "write".`,
    ],
    ['no mode', { mode: null }, `Option "mode" must be 'exclusive' or 'shared', received null.`],
    ['a limit of none', { limit: 0 }, 'Option "limit" must be a whole number from 1, received 0.'],
    ['half a place', { limit: 1.5 }, 'Option "limit" must be a whole number from 1, received 1.5.'],
    ['a text', { limit: '3' }, 'Option "limit" must be a whole number from 1, received "3".'],
    [
      'both',
      { mode: 'shared', limit: 3 },
      `Option "limit" goes without "mode", which is 'shared': a lock is exclusive, shared, or limited.`,
    ],
  ])('refuse %s, at the call and of a decorated method', async (_, options, message) => {
    const locks = serviceOf({ store: 'memory' });
    const refusal = new LockConfigurationError(message);
    const wrong = options as AcquireOptions;
    await expect(locks.acquire('key', wrong)).rejects.toThrow(refusal);
    await expect(locks.tryAcquire('key', wrong)).rejects.toThrow(refusal);
    await expect(locks.run('key', wrong, () => 'ran')).rejects.toThrow(refusal);
    await expect(locks.tryRun('key', wrong, () => 'ran')).rejects.toThrow(refusal);
    const decorating = (): unknown => {
      class Jobs {
        @WithLock('key', wrong as { limit?: number })
        async work(): Promise<void> {}
      }
      return Jobs;
    };
    expect(decorating).toThrow(new LockConfigurationError(`@WithLock on Jobs.work: ${message}`));
  });

  it('of a decorated method let so many calls in', async () => {
    @Injectable()
    class Jobs {
      readonly gate = deferred();

      @WithLock('shared', { mode: 'shared' })
      async read(): Promise<string> {
        await this.gate.promise;
        return 'read';
      }

      @WithLock('shared')
      async write(): Promise<string> {
        return 'written';
      }

      @WithLock('limited', { limit: 2, onLocked: 'skip' })
      async work(): Promise<string | undefined> {
        await this.gate.promise;
        return 'worked';
      }
    }
    const { app } = await start({ store: 'memory' }, [Jobs]);
    const jobs = app.get(Jobs);
    const calls = [jobs.read(), jobs.read(), jobs.work(), jobs.work(), jobs.work()];
    await expect(jobs.write()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect(await calls[4]).toBeUndefined();
    jobs.gate.resolve();
    expect(await Promise.all(calls)).toEqual(['read', 'read', 'worked', 'worked', undefined]);
    expect(await jobs.write()).toBe('written');
  });
});

describe('the option places', () => {
  it.each<[string, object, string]>([
    [
      'more than there are',
      { limit: 2, places: 3 },
      'Option "places", 3, is more than "limit", 2: no caller could ever have that many. Give fewer "places", or a larger "limit".',
    ],
    [
      'those of no limit',
      { places: 1 },
      'Option "places", 1, goes only with "limit", which says how many places there are. Write { limit: 10, places: 3 }.',
    ],
  ])(
    'refuses %s, at the call, of a definition and of a decorated method',
    async (_, options, message) => {
      const locks = serviceOf({ store: 'memory' });
      const refusal = new LockConfigurationError(message);
      await expect(locks.acquire('key', options)).rejects.toThrow(refusal);
      await expect(locks.tryRun('key', options, () => 'ran')).rejects.toThrow(refusal);
      expect(() => defineLock('key', options)).toThrow(`defineLock("key"): ${message}`);
      const decorating = (): unknown => {
        class Jobs {
          @WithLock('key', options)
          async work(): Promise<void> {}
        }
        return Jobs;
      };
      expect(decorating).toThrow(new LockConfigurationError(`@WithLock on Jobs.work: ${message}`));
    },
  );

  it('is no fraction, and no function without a limit', () => {
    const decorating = (places: unknown, limit?: number) => () => {
      class Jobs {
        @WithLock('key', { places, ...(limit !== undefined && { limit }) } as { limit: number })
        async work(): Promise<void> {}
      }
      return Jobs;
    };
    expect(decorating(1.5, 3)).toThrow(
      'Option "places" must be a whole number from 1, or a function of the arguments, received 1.5.',
    );
    expect(decorating(() => 1)).toThrow('Option "places", a function, goes only with "limit"');
  });

  it('of a decorated method may come from its arguments, and from its object', async () => {
    interface Order {
      readonly weight: number;
    }
    @Injectable()
    class Exports {
      readonly gate = deferred();
      readonly heavy = 3;

      @WithLock('exports', { limit: 4, places: (order: Order) => order.weight, onLocked: 'skip' })
      async send(_order: Order): Promise<string | undefined> {
        await this.gate.promise;
        return 'sent';
      }

      @WithLock('exports', {
        limit: 4,
        places(this: Exports) {
          return this.heavy;
        },
        onLocked: 'skip',
      })
      async sendAll(): Promise<string | undefined> {
        return 'sent';
      }
    }
    const { app } = await start({ store: 'memory' }, [Exports]);
    const exports = app.get(Exports);
    const [three, two, one] = [{ weight: 3 }, { weight: 2 }, { weight: 1 }].map((order) =>
      exports.send(order),
    );
    expect(await two).toBeUndefined();
    expect(await exports.sendAll()).toBeUndefined();
    expect(await exports.send({ weight: 1 })).toBeUndefined();
    exports.gate.resolve();
    expect(await Promise.all([three, one])).toEqual(['sent', 'sent']);
    expect(await exports.sendAll()).toBe('sent');
    await expect(exports.send({ weight: 5 })).rejects.toThrow(
      /^@WithLock on Exports\.send: Option "places", 5, is more than "limit", 4/,
    );
    await expect(exports.send({ weight: 0.5 })).rejects.toThrow(
      '@WithLock on Exports.send: Option "places" must be a whole number from 1, received 0.5.',
    );
  });

  it('of a handler is worked out after its pipes', async () => {
    @Controller('exports')
    class Handlers {
      readonly gate = deferred();

      @Get(':weight')
      @WithLock('exports', { limit: 4, places: (weight: number) => weight })
      async send(@Param('weight', ParseIntPipe) _weight: number): Promise<string> {
        await this.gate.promise;
        return 'sent';
      }
    }
    const http = await startHttpApp({ controllers: [Handlers] });
    const granted = new Promise((resolve) => http.locks.on('acquired', resolve));
    const first = http.get('/exports/3');
    expect(await granted).toMatchObject({ mode: 'limit:4', places: 3 });
    expect((await http.get('/exports/2')).status).toBe(409);
    http.app.get(Handlers).gate.resolve();
    expect([(await first).status, (await http.get('/exports/1')).status]).toEqual([200, 200]);
  });
});

describe('a decorated method that needs one Redis, over several masters', () => {
  @Injectable()
  class Limited {
    @WithLock('key', { limit: 3 })
    async work(): Promise<void> {}
  }
  @Injectable()
  class Shared {
    @WithLock('key', { mode: 'shared' })
    async work(): Promise<void> {}
  }
  @Injectable()
  class Once {
    @RunOnce('key')
    async work(): Promise<void> {}
  }
  const ALL: [Type<{ work: () => Promise<void> }>, RegExp][] = [
    [Limited, /^@WithLock on Limited\.work: Option "limit" needs one Redis, .* lists 3 masters/],
    [Shared, /^@WithLock on Shared\.work: Option "mode" needs one Redis, .* lists 3 masters/],
    [Once, /^@RunOnce on Once\.work: Work that is to be done once needs one Redis, .* lists 3/],
  ];

  it.each(ALL)(
    '%p fails the start of a provider, and of what a factory made',
    async (one, text) => {
      const made = { provide: 'made', useFactory: () => new one() };
      for (const provider of [one, made]) {
        const failure = await start({ redis: NOBODY }, [provider]).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(LockConfigurationError);
        expect((failure as Error).message).toMatch(text);
      }
    },
  );

  it('fails the start of a controller', async () => {
    @Controller()
    class Handlers extends Limited {}
    await expect(start({ redis: NOBODY }, [], [Handlers])).rejects.toThrow(/"limit" needs one/);
  });

  it.each(ALL)('%p fails bind()', (one, text) => {
    const locks = serviceOf({ redis: NOBODY });
    expect(() => locks.bind(new one())).toThrow(text);
  });

  it('is no business of a service by another name', async () => {
    await start({ store: 'memory' }, [Limited]); // the one that it asks for
    const locks = serviceOf({ redis: NOBODY }, { name: 'jobs' });
    expect(() => locks.bind(new Limited())).not.toThrow();
  });
});

describe('a decorated method with a TTL that the restart guard forbids', () => {
  it('fails the start', async () => {
    @Injectable()
    class Jobs {
      @WithLock('key', { ttl: '6s' })
      async work(): Promise<void> {}
    }
    const options = { redis: NOBODY, ttl: '5s', restartGuard: { maxTtl: '5s' } } as const;
    await expect(start(options, [Jobs])).rejects.toThrow(
      /^@WithLock on Jobs\.work: A TTL of 6000 ms is longer than "restartGuard\.maxTtl"/,
    );
  });
});
