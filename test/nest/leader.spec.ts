import {
  Controller,
  Inject,
  Injectable,
  Module,
  Scope,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type ModuleMetadata,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Leader,
  LockConfigurationError,
  LockModule,
  LockService,
  type Lead,
} from 'nestjs-holdfast';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { closeApps, startApp } from './module/start-app.js';
import { MemoryDriver } from '../driver/memory-driver.js';
import { eventually } from '../support/eventually.js';
import { storeOption } from '../../lib/options/location.js';

afterEach(closeApps);

@Injectable()
class Reports {
  readonly leads: Lead[] = [];
  readonly log: string[] = [];

  @Leader('reports', { ttl: '5s' })
  async lead(lead: Lead): Promise<void> {
    this.leads.push(lead);
    await new Promise((resolve) => {
      lead.signal.addEventListener('abort', resolve);
    });
    this.log.push('work ended');
  }

  onModuleDestroy(): void {
    this.log.push(`aborted: ${String(this.leads[0]?.signal.aborted)}`);
  }
}

describe('@Leader', () => {
  const startOne = async (store: MemoryLockStore) => {
    const { app, warnings } = await startApp({
      imports: [LockModule.forRoot({ store: storeOption(store) })],
      providers: [Reports, { provide: 'again', useExisting: Reports }],
    });
    return { app, warnings, reports: app.get(Reports) };
  };

  it('has a method run on one instance, and on another one when that is closed', async () => {
    const store = new MemoryLockStore();
    const one = await startOne(store);
    await eventually(() => one.reports.leads.length === 1);
    const two = await startOne(store);
    expect(await two.app.get(LockService).inspect('reports')).toMatchObject({ held: true });
    expect(two.reports.leads).toEqual([]);
    await one.app.close();
    expect(one.reports.log).toContain('work ended');
    await eventually(() => two.reports.leads.length === 1);
    expect(two.reports.leads[0]?.term).toBeGreaterThan(one.reports.leads[0]?.term ?? Infinity);
    expect([...one.warnings, ...two.warnings]).toEqual([]);
  });

  describe('while the application starts', () => {
    const quiet = { log: () => undefined, warn: () => undefined, error: () => undefined };
    let problem: Error | undefined;
    let isElected: boolean | undefined;

    /** Its hook takes longer than an election. */
    @Injectable()
    class Mailbox {
      isReady = false;
      readonly leads: boolean[] = [];
      constructor(@Inject(LockService) private readonly locks: LockService) {}

      async onApplicationBootstrap(): Promise<void> {
        for (const turn of [1, 2, 3]) await this.locks.run(`turn:${turn}`, () => undefined);
        isElected = (await this.locks.inspect('mailbox')).held;
        if (problem !== undefined) throw problem;
        this.isReady = true;
      }

      @Leader('mailbox')
      async lead({ signal }: Lead): Promise<void> {
        this.leads.push(this.isReady);
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
      }
    }

    const modulesOf = (isGlobal: boolean): ModuleMetadata => {
      const locks = LockModule.forRoot({ store: 'memory', isGlobal });
      @Module({ imports: [locks], providers: [Mailbox], exports: [Mailbox] })
      class MailboxModule {}
      return { imports: [MailboxModule, locks] };
    };

    beforeEach(() => {
      problem = isElected = undefined;
    });

    it.each([true, false])(
      'elects no leader before all hooks of the start (global: %s)',
      async (isGlobal) => {
        const { app } = await startApp(modulesOf(isGlobal));
        const { leads } = app.get(Mailbox, { strict: false });
        expect(isElected).toBe(false);
        await eventually(() => leads.length === 1);
        expect(leads).toEqual([true]);
      },
    );

    it.each([true, false])('elects none if the start fails (global: %s)', async (isGlobal) => {
      problem = new Error('no mail server');
      const app = await Test.createTestingModule(modulesOf(isGlobal)).setLogger(quiet).compile();
      await expect(app.init()).rejects.toThrow('no mail server');
      expect(isElected).toBe(false);
      const locks = app.get(LockService, { strict: false });
      expect((await locks.inspect('mailbox')).held).toBe(false);
      await app.close();
    });

    it('elects none if another leader cannot stand', async () => {
      @Injectable()
      class Other {
        @Leader('other', { instance: 'other' })
        lead(): void {
          // Never called.
        }
      }
      const app = await Test.createTestingModule({
        imports: [
          LockModule.forRoot({ store: 'memory' }),
          LockModule.forRoot({ store: new MemoryDriver(), name: 'other' }),
        ],
        providers: [Reports, Other],
      })
        .setLogger(quiet)
        .compile();
      await expect(app.init()).rejects.toThrow(LockConfigurationError);
      expect(app.get(Reports).leads).toEqual([]);
      await app.close();
    });
  });

  it('names the method in events', async () => {
    const store = new MemoryLockStore();
    const { app, reports } = await startOne(store);
    await eventually(() => reports.leads.length === 1);
    const methods: unknown[] = [];
    app.get(LockService).on('released', ({ method }) => methods.push(method));
    await app.close();
    expect(methods).toEqual(['Reports.lead']);
  });

  it('is not inherited by an override without it, which is warned of, and is by a class that does not override', async () => {
    @Injectable()
    class Quiet extends Reports {
      override async lead(lead: Lead): Promise<void> {
        this.leads.push(lead);
      }
    }
    @Injectable()
    class Loud extends Reports {}
    const { app, warnings } = await startApp({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Quiet, Loud],
    });
    expect(warnings).toEqual([
      'Quiet.lead overrides Reports.lead, which has @Leader, and is not called. Repeat @Leader there if it is to lead.',
    ]);
    await eventually(() => app.get(Loud).leads.length === 1);
    app.get(Loud).leads[0]?.stepDown();
    await eventually(() => app.get(Loud).leads.length === 2);
    expect(app.get(Quiet).leads).toEqual([]);
  });

  it('uses the service that it names', async () => {
    @Injectable()
    class Jobs {
      readonly leads: Lead[] = [];
      @Leader('jobs', { instance: 'jobs' })
      lead(lead: Lead): void {
        this.leads.push(lead);
      }
    }
    const { app } = await startApp({
      imports: [
        LockModule.forRoot({ store: 'memory' }),
        LockModule.forRoot({ store: 'memory', name: 'jobs' }),
      ],
      providers: [Jobs],
    });
    await eventually(() => app.get(Jobs).leads.length === 1);
    expect(await app.get(LockService).inspect('jobs')).toEqual({ held: false });
  });

  it('leaves the leading to others where a stand-in that is no object is provided', async () => {
    @Injectable()
    class Other extends Reports {}
    const { app } = await startApp({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [{ provide: Reports, useFactory: () => 'a stand-in' }, Other],
    });
    await eventually(() => app.get(Other).leads.length === 1);
  });

  describe('prevents the start', () => {
    class Mailbox {
      @Leader('mailbox')
      lead(): void {
        // Never called.
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest extends Mailbox {
      constructor(@Inject(REQUEST) readonly request: unknown) {
        super();
      }
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Mailbox {}
    @Controller()
    class Mails extends Mailbox {}
    @Injectable()
    class Sorting extends Mailbox {
      intercept(_context: ExecutionContext, next: CallHandler) {
        return next.handle();
      }
    }
    @Controller()
    @UseInterceptors(Sorting)
    class Sorted {}
    @Injectable()
    class Jobs {
      @Leader('jobs', { instance: 'jbos' })
      lead(): void {
        // Never called.
      }
    }
    const make = { provide: Mailbox, useFactory: () => new Mailbox() };

    it.each<[string, ModuleMetadata, string]>([
      ['that depends on the request', { providers: [OfRequest] }, 'depends on the request'],
      [
        'of a factory for each request',
        { providers: [{ ...make, scope: Scope.REQUEST }] },
        'depends on the request',
      ],
      ['that is transient', { providers: [Transient] }, 'is transient'],
      [
        'of a transient factory',
        { providers: [{ ...make, scope: Scope.TRANSIENT }] },
        'is transient',
      ],
      ['that is a controller', { controllers: [Mails] }, 'is a controller'],
      ['that is an interceptor only', { controllers: [Sorted] }, 'is no provider'],
    ])('on a class %s', async (_which, metadata, problem) => {
      const starting = startApp({
        imports: [LockModule.forRoot({ store: 'memory' })],
        ...metadata,
      });
      await expect(starting).rejects.toThrow(LockConfigurationError);
      await expect(starting).rejects.toThrow(`@Leader on Mailbox.lead: its class ${problem}`);
      await expect(starting).rejects.toThrow('into a provider of the default scope.');
    });

    it('on no interceptor that is a provider, too, which leads', async () => {
      const { app } = await startApp({
        imports: [LockModule.forRoot({ store: 'memory' })],
        controllers: [Sorted],
        providers: [Sorting],
      });
      const locks = app.get(LockService);
      await eventually(async () => (await locks.getLeader('mailbox')) !== null);
    });

    it('on no guard whose class, or base class, is provided under its own name', async () => {
      @Injectable()
      class Auth extends Mailbox {
        canActivate(): boolean {
          return true;
        }
      }
      class AdminAuth extends Auth {}
      @Controller()
      @UseGuards(Auth)
      class Guarded {}
      @Controller()
      @UseGuards(AdminAuth)
      class GuardedMore {}
      const imports = [LockModule.forRoot({ store: 'memory' })];
      const providers = [Auth];
      const controllers = [Guarded, GuardedMore];
      const { app } = await startApp({ imports, controllers, providers });
      await eventually(async () => (await app.get(LockService).getLeader('mailbox')) !== null);
      const module = await Test.createTestingModule({ imports, controllers: [Guarded], providers })
        .overrideProvider(Auth)
        .useValue({ canActivate: () => true })
        .compile();
      await module.init();
      await module.close();
    });

    it.each<[string, ModuleMetadata, string]>([
      [
        'a service that is misspelt',
        { imports: [LockModule.forRoot({ store: 'memory' })], providers: [Jobs] },
        "the LockService of @Leader on Jobs.lead: in a test, import LockTestingModule.forRoot({ name: 'jbos' })",
      ],
      [
        'such a service, on an object of a factory',
        {
          imports: [LockModule.forRoot({ store: 'memory' })],
          providers: [{ provide: 'jobs', useFactory: () => new Jobs() }],
        },
        `@Leader on Jobs.lead: its LockService is missing. Import LockModule.forRoot({ name: 'jbos', … }), or correct "instance".`,
      ],
      [
        'a LockModule that is not imported',
        { providers: [Reports] },
        'the LockService of @Leader on Reports.lead: in a test, import LockTestingModule.forRoot()',
      ],
    ])('for want of %s', async (_what, metadata, problem) => {
      await expect(startApp(metadata)).rejects.toThrow(problem);
    });
  });

  it.each([
    [() => Leader('reports', { wait: 1 } as never), 'A candidate waits until it is elected'],
    [() => Leader('reports', { onElected: 1 } as never), 'The method is what is called'],
    [() => Leader('reports', { ttl: 1 }), 'Option "ttl" must be a duration'],
    [() => Leader('reports', '5s' as never), 'takes its options as an object, received "5s"'],
    [() => Leader({ ttl: '5s' } as never), 'needs the name that instances compete for'],
    [() => Leader('{a}'), '@Leader on Reports.lead: The lock key "{a}" contains a brace'],
    [
      () => (Leader as () => ReturnType<typeof Leader>)(),
      "@Leader on Reports.lead needs the name that instances compete for: @Leader('reports').",
    ],
  ])('refuses what cannot work when the class is defined: %#', (make, problem) => {
    const define = () => {
      const descriptor = { value: () => undefined };
      make()({ constructor: Reports }, 'lead', descriptor);
    };
    expect(define).toThrow(problem);
  });

  it('is refused without its parentheses', () => {
    const bare = Leader as unknown as (...args: unknown[]) => unknown;
    const remedy = "needs parentheses, and a name in them: @Leader('reports').";
    expect(() => bare(Reports.prototype, 'lead', {})).toThrow(`@Leader on Reports.lead ${remedy}`);
    expect(() => bare(Reports)).toThrow(`@Leader on Reports ${remedy}`);
  });

  it('is refused twice on one method', () => {
    const descriptor = { value: () => undefined };
    Leader('one')({ constructor: Reports }, 'lead', descriptor);
    expect(() => {
      Leader('two')({ constructor: Reports }, 'lead', descriptor);
    }).toThrow('Reports.lead has @Leader twice. Keep one of them.');
  });

  it('refuses what is no method', () => {
    expect(() => {
      Leader('reports')({ constructor: Reports }, 'lead', {});
    }).toThrow(LockConfigurationError);
    expect(() => {
      Leader('reports')(Reports, 'lead', { value: () => undefined });
    }).toThrow('can only be applied to instance methods.');
  });
});
