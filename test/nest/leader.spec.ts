import { Inject, Injectable, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Leader,
  LockConfigurationError,
  LockModule,
  LockService,
  type Lead,
} from 'nestjs-holdfast';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { closeApps, startApp } from './module/start-app.js';
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

  it('names the method in events', async () => {
    const store = new MemoryLockStore();
    const { app, reports } = await startOne(store);
    await eventually(() => reports.leads.length === 1);
    const methods: unknown[] = [];
    app.get(LockService).on('released', ({ method }) => methods.push(method));
    await app.close();
    expect(methods).toEqual(['Reports.lead']);
  });

  it('is not inherited by an override without it, and is by a class that does not override', async () => {
    @Injectable()
    class Quiet extends Reports {
      override async lead(lead: Lead): Promise<void> {
        this.leads.push(lead);
      }
    }
    @Injectable()
    class Loud extends Reports {}
    const { app } = await startApp({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Quiet, Loud],
    });
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

  it('on a class that depends on the request prevents the start', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest {
      constructor(@Inject(REQUEST) readonly request: unknown) {}
      @Leader('reports')
      lead(): void {
        // Never called.
      }
    }
    const starting = startApp({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [OfRequest],
    });
    await expect(starting).rejects.toThrow(
      '@Leader on OfRequest.lead: its class depends on the request',
    );
  });

  it.each([
    [() => Leader('reports', { wait: 1 } as never), 'A candidate waits until it is elected'],
    [() => Leader('reports', { onElected: 1 } as never), 'The method is what is called'],
    [() => Leader('reports', { ttl: 1 }), 'Option "ttl" must be a duration'],
    [() => Leader('{a}'), ''],
  ])('refuses what cannot work when the class is defined: %#', (make, problem) => {
    const define = () => {
      const descriptor = { value: () => undefined };
      make()({ constructor: Reports }, 'lead', descriptor);
    };
    expect(define).toThrow(problem);
  });

  it('refuses what is no method', () => {
    expect(() => {
      Leader('reports')({ constructor: Reports }, 'lead', {});
    }).toThrow(LockConfigurationError);
  });
});
