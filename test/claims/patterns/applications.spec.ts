import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { Program } from '../sample/program.js';
import { START_LIMIT_MS } from '../transports/support/child-application.js';
import { Services } from './services.js';

const page = readFileSync(new URL('../../../docs/recipes.md', import.meta.url), 'utf8');
const codeIn = (language: string, section: string): string =>
  new RegExp(`\n## ${section}\n[^]*?\n\`\`\`${language}\n([^]*?)\`\`\``).exec(page)![1]!;

let server: RedisServer;
let program: Program;
let url: string;
const services = new Services();

beforeAll(async () => {
  server = await RedisServer.start();
  program = new Program('test/claims/patterns/application.ts', {
    ...{ REDIS_URL: server.url, PORT: '0' },
  });
  const [, found] = await program.says(/open on (\S+)/);
  url = found!.replace('[::1]', '127.0.0.1');
}, START_LIMIT_MS);

afterEach(() => services.closeAll());

afterAll(async () => {
  await program.kill();
  await server.stop();
});

const post = (path: string, headers: Record<string, string> = {}, body?: unknown) =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

describe('a GraphQL resolver', () => {
  const pay = (id: string): Promise<Response> =>
    post('/graphql', {}, { query: `mutation { payOrder(id: "${id}") }` });

  it('that is refused answers as on the page', async () => {
    const locks = await services.open(server.url);
    const lock = await locks.acquire('order:42');
    const refused = await pay('42');
    await lock.release();
    expect(refused.status).toBe(200);
    const { data, errors } = JSON.parse(codeIn('json', 'A GraphQL resolver')) as {
      readonly data: unknown;
      readonly errors: [{ readonly extensions: object }];
    };
    const extensions = { ...errors[0].extensions, retryAfterMs: expect.any(Number) };
    expect(await refused.json()).toMatchObject({ data, errors: [{ ...errors[0], extensions }] });
    expect(await (await pay('42')).json()).toEqual({ data: { payOrder: 'paid 42' } });
  });
});

describe('the tenant in the key', () => {
  it.each(['count', 'close'])('keeps tenants apart: %s', async (what) => {
    const locks = await services.open(server.url);
    const lock = await locks.acquire('acme:stock:cup');
    const statusFor = async (tenant?: string): Promise<number> =>
      (await post(`/stocks/cup/${what}`, tenant === undefined ? {} : { 'x-tenant': tenant }))
        .status;
    expect([await statusFor('acme'), await statusFor('globex')]).toEqual([409, 201]);
    await lock.release();
    expect(await statusFor('acme')).toBe(201);
    expect(await statusFor()).toBe(what === 'close' ? 400 : 500);
  });
});

interface Pod {
  readonly spec: {
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly [
      {
        readonly command: readonly string[];
        readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
        readonly readinessProbe: Probe;
        readonly livenessProbe: Probe;
      },
    ];
  };
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number };
  readonly timeoutSeconds?: number;
}

describe('a shutdown in Kubernetes', () => {
  const pod = load(codeIn('yaml', 'A shutdown in Kubernetes')) as Pod;
  const { terminationGracePeriodSeconds, containers } = pod.spec;
  const [{ lifecycle, readinessProbe, livenessProbe }] = containers;
  const SHUTDOWN_TIMEOUT_S = 10;

  it('leaves time for the pause and for the shutdown', () => {
    const neededS = lifecycle.preStop.sleep.seconds + SHUTDOWN_TIMEOUT_S + 12;
    expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(neededS);
  });

  it('has a probe that notices when no lock is granted, and one that does not', async () => {
    const statusOf = async ({ httpGet }: Probe): Promise<number> =>
      (await fetch(url + httpGet.path)).status;
    expect([await statusOf(readinessProbe), await statusOf(livenessProbe)]).toEqual([200, 200]);
    server.freeze();
    const began = performance.now();
    expect(await statusOf(readinessProbe)).toBe(503);
    expect(performance.now() - began).toBeLessThan(1_000 * readinessProbe.timeoutSeconds!);
    expect(await statusOf(livenessProbe)).toBe(200);
    server.thaw();
    await eventually(async () => (await statusOf(readinessProbe)) === 200);
  });

  it('refuses waiting calls, finishes the work, releases the locks, and ends', async () => {
    const paying = post('/orders/long/pay');
    await program.says(/works/);
    const waiting = post('/orders/long/pay');
    await eventually(async () => (await server.command('ZCARD', '{lock:order:long}:queue')) === 1);
    program.signal('SIGTERM');
    expect((await waiting).status).toBe(503);
    expect(await server.command('EXISTS', 'lock:order:long')).toBe(1);
    program.signal('SIGUSR2');
    expect((await paying).status).toBe(201);
    expect(await program.ended).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await server.command('EXISTS', 'lock:order:long')).toBe(0);
  });
});
