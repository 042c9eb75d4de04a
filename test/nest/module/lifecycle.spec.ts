import { Injectable, Scope } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockModule, LockNotBoundError, LockService, WithLock } from 'nestjs-holdfast';
import { closeApps, startApp } from './start-app.js';

class Reports {
  @WithLock('report')
  async make(): Promise<string> {
    return Promise.resolve('made');
  }
}

const imports = [LockModule.forRoot({ store: 'memory' })];

afterEach(closeApps);

describe('objects that Nest does not make', () => {
  it('get their LockService when the application starts: of a factory, and values', async () => {
    const value = new Reports();
    const { app } = await startApp({
      imports,
      providers: [
        { provide: 'made', useFactory: () => new Reports() },
        { provide: 'made later', useFactory: async () => Promise.resolve(new Reports()) },
        { provide: 'value', useValue: value },
        { provide: 'nothing', useValue: null },
        { provide: 'text', useValue: 'text' },
        { provide: 'without prototype', useValue: Object.create(null) as object },
      ],
    });
    for (const token of ['made', 'made later', 'value']) {
      expect(await app.get<Reports>(token).make()).toBe('made');
    }
  });

  it('get the service that their methods name', async () => {
    class Jobs {
      @WithLock('job', { instance: 'jobs' })
      async run(): Promise<string> {
        return Promise.resolve('ran');
      }
    }
    const { app } = await startApp({
      imports: [...imports, LockModule.forRoot({ store: 'memory', name: 'jobs' })],
      providers: [{ provide: Jobs, useFactory: () => new Jobs() }],
    });
    expect(await app.get(Jobs).run()).toBe('ran');
  });

  it('get none inside of what a factory makes, nor from a transient one, until they are bound', async () => {
    const { app } = await startApp({
      imports,
      providers: [
        { provide: 'nested', useFactory: () => ({ list: [new Reports()] }) },
        { provide: 'transient', useFactory: () => new Reports(), scope: Scope.TRANSIENT },
        {
          provide: 'with it',
          useFactory: (made: Reports) => ({ list: [made] }),
          inject: ['transient'],
        },
      ],
    });
    const nested = app.get<{ list: [Reports] }>('nested').list[0];
    const transient = await app.resolve<Reports>('transient');
    const injected = app.get<{ list: [Reports] }>('with it').list[0];
    for (const reports of [nested, transient, injected]) {
      await expect(reports.make()).rejects.toThrow('call locks.bind(object) first');
      expect(await app.get(LockService).bind(reports).make()).toBe('made');
    }
  });

  it('made for a request get none, and fail rather than run unlocked, until they are bound', async () => {
    const { app } = await startApp({
      imports,
      providers: [{ provide: Reports, useFactory: () => new Reports(), scope: Scope.REQUEST }],
    });
    const reports = await app.resolve(Reports);
    await expect(reports.make()).rejects.toThrow(LockNotBoundError);
    expect(await app.get(LockService).bind(reports).make()).toBe('made');
  });
});

describe('an override without @WithLock of a method that has it', () => {
  it('is warned of once, when the application starts', async () => {
    @Injectable()
    class Unlocked extends Reports {
      override async make(): Promise<string> {
        return Promise.resolve('unlocked');
      }
    }
    @Injectable()
    class Inherits extends Reports {}
    @Injectable()
    class Locked extends Reports {
      @WithLock('report')
      override async make(): Promise<string> {
        return Promise.resolve('locked');
      }
    }
    const { warnings } = await startApp({
      imports,
      providers: [Unlocked, Inherits, Locked, { provide: 'again', useClass: Unlocked }],
    });
    expect(warnings).toEqual([
      expect.stringMatching(/Unlocked\.make.*Reports\.make.*Repeat @WithLock there/),
    ]);
  });

  it('is warned of unless it calls that method, whatever else it has of super', async () => {
    class Noted extends Reports {
      note(): string {
        return 'super';
      }
    }
    @Injectable()
    class Unlocked extends Noted {
      override async make(): Promise<string> {
        return Promise.resolve(super.note());
      }
    }
    @Injectable()
    class ByName extends Noted {
      override async make(): Promise<string> {
        return super.make();
      }
    }
    @Injectable()
    class ByValue extends Noted {
      override async make(): Promise<string> {
        const method = 'make';
        return super[method]();
      }
    }
    const { warnings } = await startApp({ imports, providers: [Unlocked, ByName, ByValue] });
    expect(warnings).toEqual([expect.stringMatching('Unlocked.make overrides Reports.make')]);
  });

  it('is warned of once where the application has several services', async () => {
    class Jobs extends Reports {
      @WithLock('job', { instance: 'jobs' })
      async run(): Promise<string> {
        return Promise.resolve('ran');
      }
    }
    @Injectable()
    class Unlocked extends Jobs {
      override async make(): Promise<string> {
        return Promise.resolve('unlocked');
      }
      override async run(): Promise<string> {
        return Promise.resolve('unlocked');
      }
    }
    @Injectable()
    class Orders {
      @WithLock('order:orderId')
      async pay(orderId: string): Promise<string> {
        return Promise.resolve(orderId);
      }
    }
    const { warnings } = await startApp({
      imports: [...imports, LockModule.forRoot({ store: 'memory', name: 'jobs' })],
      providers: [Unlocked, Orders],
    });
    expect([...warnings].sort()).toEqual([
      expect.stringMatching('@WithLock on Orders.pay: the key "order:orderId"'),
      expect.stringMatching('Unlocked.make overrides Reports.make'),
      expect.stringMatching('Unlocked.run overrides Jobs.run'),
    ]);
  });
});
