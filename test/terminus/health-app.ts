import { Controller, Get, Inject, Query, type INestApplication } from '@nestjs/common';
import { HealthCheckService, HealthIndicatorService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { expect } from '@jest/globals';
import {
  getLockServiceToken,
  LockModule,
  LockService,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { LockHealthIndicator, type LockHealthOptions } from 'nestjs-holdfast/terminus';

/** Terminus 12 has it, and 11 does not. */
export const DEGRADES = 'degraded' in new HealthIndicatorService().check('any');

/** What a probe got. */
export interface Probe {
  readonly status: number;
  readonly text: string;
  /** Of the indicator. */
  readonly locks: {
    readonly status: string;
    readonly message?: string;
    readonly nodesGranting: number;
    readonly nodesTotal: number;
    readonly nodes?: readonly object[];
  };
  readonly tookMs: number;
}

@Controller('health')
class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(LockHealthIndicator) private readonly locks: LockHealthIndicator,
  ) {}

  @Get()
  check(@Query('options') options = '{}'): Promise<unknown> {
    return this.health.check([
      () => this.locks.check('locks', JSON.parse(options) as LockHealthOptions),
    ]);
  }
}

/** An application with a health endpoint, on a port of its own. */
export class HealthApp {
  readonly app: INestApplication;
  readonly #url: string;

  private constructor(app: INestApplication, url: string) {
    this.app = app;
    this.#url = url;
  }

  static async start(
    options: LockModuleOptions,
    jobs?: LockModuleOptions & { readonly name: string },
  ): Promise<HealthApp> {
    const { name, ...others } = jobs ?? {};
    const module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot(options),
        ...(name === undefined ? [] : [LockModule.forRoot({ name, ...others })]),
        TerminusModule.forRoot({ logger: false }),
      ],
      controllers: [HealthController],
      providers: [LockHealthIndicator],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    return new HealthApp(app, await app.getUrl());
  }

  get locks(): LockService {
    return this.app.get(LockService);
  }

  named(name: string): LockService {
    return this.app.get<LockService>(getLockServiceToken(name));
  }

  async probe(options: LockHealthOptions = {}): Promise<Probe> {
    const since = performance.now();
    const query = encodeURIComponent(JSON.stringify(options));
    const response = await fetch(`${this.#url}/health?options=${query}`);
    const text = await response.text();
    const { details } = JSON.parse(text) as {
      readonly details: { readonly locks: Probe['locks'] };
    };
    return {
      status: response.status,
      text,
      locks: details.locks,
      tookMs: performance.now() - since,
    };
  }

  /** Health and calls for locks agree that none can be granted. */
  async expectDown(message: RegExp, options?: LockHealthOptions): Promise<void> {
    const probe = await this.probe(options);
    expect(probe).toMatchObject({
      status: 503,
      locks: { status: 'down', message: expect.stringMatching(message) },
    });
    const error: unknown = await this.locks.tryAcquire('order:42').catch((fault: unknown) => fault);
    const isRefused =
      error instanceof LockStoreUnavailableError || error instanceof LockServiceClosedError;
    expect([error, isRefused]).toEqual([error, true]);
  }

  /** Health and calls for locks agree that locks are granted. */
  async expectUp(): Promise<void> {
    const { status, locks } = await this.probe();
    expect([status, locks.status, locks.message]).toEqual([200, 'up', undefined]);
    await (await this.locks.acquire('order:42')).release();
  }

  stop(): Promise<void> {
    return this.app.close();
  }
}
