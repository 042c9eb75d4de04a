import { request } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type CanActivate } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { LockConfigurationError } from 'nestjs-holdfast';
import { LockBoardModule, type LockBoardOptions } from '@nestjs-holdfast/board';
import { ADAPTERS, closeHttpApps } from '../nest/http-app.js';
import { AdminGuard, EventClient, fromPage, startBoard } from './board-app.js';

afterEach(closeHttpApps);

const READS = [
  '/locks',
  '/locks/',
  '/locks/assets/page.js',
  '/locks/assets/page.css',
  '/locks/api/stream',
  '/locks/api/stream?key=order:42',
];
const ACTIONS = ['release', 'release-several', 'release-instance', 'forget-once'].map(
  (name) => `/locks/api/${name}`,
);
const BODY = { key: 'order:42', holders: [], id: 'x', reason: 'stuck' };

/** What a guard needs, in a module of its own. */
@Injectable()
class Roles {
  readonly admin = 'admin';
}
@Module({ providers: [Roles], exports: [Roles] })
class RolesModule {}
@Injectable()
class RolesGuard implements CanActivate {
  constructor(private readonly roles: Roles) {}

  canActivate: CanActivate['canActivate'] = (context) =>
    context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers.role ===
    this.roles.admin;
}

const ofTheApplication = { parts: { providers: [{ provide: APP_GUARD, useClass: AdminGuard }] } };

/** With any Host header, which `fetch` does not send. */
function statusOf(url: string, headers: Record<string, string>, body?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request(url, { headers, method }, (response) => {
      response.resume().once('end', () => {
        resolve(response.statusCode ?? 0);
      });
    });
    sent.once('error', reject).end(body);
  });
}

it.each([undefined, null, 'locks'])('a page with the options %s is refused', (options) => {
  expect(() => LockBoardModule.forRoot(options as unknown as LockBoardOptions)).toThrow(
    new LockConfigurationError(
      'LockBoardModule.forRoot needs its options as an object: forRoot({ guards: [AdminGuard] }).',
    ),
  );
});

describe.each(ADAPTERS)('on %s', (adapter) => {
  describe.each([
    ['a guard of the page', { board: { guards: [AdminGuard] } }],
    ['an object that guards the page', { board: { guards: [new AdminGuard()] } }],
    ['a guard that injects', { board: { guards: [RolesGuard], imports: [RolesModule] } }],
    ['a guard of the application', ofTheApplication],
  ])('%s', (_, settings) => {
    it('denies the page, its files, its data, and its actions', async () => {
      const { get, post, locks, url } = await startBoard({ adapter, ...settings });
      const lock = await locks.acquire('order:42');
      for (const path of READS) expect([path, (await get(path)).status]).toEqual([path, 403]);
      for (const path of ACTIONS) {
        const { status } = await post(path, BODY, { headers: fromPage(url) });
        expect([path, status]).toEqual([path, 403]);
      }
      expect(lock.signal.aborted).toBe(false);
    });

    it('lets those through who may', async () => {
      const { get, post, url } = await startBoard({ adapter, ...settings });
      const headers = { role: 'admin' };
      expect((await get('/locks', { headers })).status).toBe(200);
      const { status } = await post('/locks/api/release', BODY, {
        headers: { ...fromPage(url), ...headers },
      });
      expect(status).toBe(200);
    });
  });

  it.each<[LockBoardOptions, string, number]>([
    [{ unguarded: true }, 'evil.example', 403],
    [{ unguarded: true }, 'localhost.evil.example:3000', 403],
    [{ unguarded: true }, '127.0.0.1.evil.example', 403],
    [{ unguarded: true }, 'localhost:3000', 200],
    [{ unguarded: true }, 'Orders.LOCALHOST', 200],
    [{ unguarded: true }, '10.1.2.3:3000', 200],
    [{ unguarded: true }, '[::1]:3000', 200],
    [{ unguarded: true, hosts: ['ops.internal'] }, 'ops.internal:3000', 200],
    [{ unguarded: true, hosts: ['ops.internal'] }, 'localhost:3000', 403],
    [{ guards: [new AdminGuard()] }, 'ops.example.com', 200],
    [{ guards: [new AdminGuard()], hosts: ['ops.example.com'] }, 'OPS.example.com', 200],
    [{ guards: [new AdminGuard()], hosts: ['ops.example.com'] }, 'evil.example', 403],
  ])('with %j, a request for %s gets %d, whatever it asks for', async (board, host, expected) => {
    const { url, locks } = await startBoard({ adapter, board });
    const lock = await locks.acquire('order:42');
    for (const path of READS.filter((each) => !each.includes('stream')))
      expect([path, await statusOf(`${url}${path}`, { host, role: 'admin' })]).toEqual([
        path,
        expected,
      ]);
    // The page of the attacker is of the same origin as its requests.
    const headers = { ...fromPage(`http://${host}`), host, role: 'admin' };
    const body = JSON.stringify(BODY);
    expect(await statusOf(`${url}/locks/api/release`, headers, body)).toBe(
      expected === 403 ? 403 : 409,
    );
    expect(lock.signal.aborted).toBe(false);
  });

  it('everybody may where the options say so', async () => {
    const { url } = await startBoard({ adapter, board: { unguarded: true } });
    const client = new EventClient();
    expect(await client.open(`${url}/locks/api/stream`)).toBe(200);
    client.close();
  });
});

describe('LockBoardModule.forRoot', () => {
  it.each<[LockBoardOptions, string]>([
    [{}, 'unguarded: true'],
    [{ guards: [] }, 'unguarded: true'],
    [{ guards: [], unguarded: false }, 'unguarded: true'],
    [{ guards: [AdminGuard], unguarded: true }, 'exclude each other'],
    [{ hosts: ['ops.example.com'] }, 'unguarded: true'],
    [{ hosts: ['https://ops.example.com'], guards: [AdminGuard] }, 'hosts'],
    [{ hosts: [], guards: [AdminGuard] }, 'hosts'],
    [{ path: '', unguarded: true }, 'path'],
    [{ path: '/', unguarded: true }, 'path'],
    [{ path: ':tenant/locks', unguarded: true }, 'path'],
    [{ path: 'locks/*', unguarded: true }, 'path'],
  ])('refuses %j', (options, text) => {
    expect(() => LockBoardModule.forRoot(options)).toThrow(LockConfigurationError);
    expect(() => LockBoardModule.forRoot(options)).toThrow(text);
  });
});
