import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type CanActivate } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { LockConfigurationError } from 'nestjs-holdfast';
import { LockBoardModule, type LockBoardOptions } from 'nestjs-holdfast/board';
import { ADAPTERS, closeHttpApps } from '../nest/http-app.js';
import { AdminGuard, EventClient, fromPage, startBoard } from './board-app.js';

afterEach(closeHttpApps);

const READS = [
  '/locks',
  '/locks/',
  '/locks/assets/page.js',
  '/locks/assets/page.css',
  '/locks/api/stream?prefix=',
  '/locks/api/stream?key=order:42',
];
const ACTIONS = ['release', 'release-instance', 'forget-once'].map((name) => `/locks/api/${name}`);
const BODY = { key: 'order:42', id: 'x', reason: 'stuck' };

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

  it('everybody may where the options say so', async () => {
    const { url } = await startBoard({ adapter, board: { unguarded: true } });
    const client = new EventClient();
    expect(await client.open(`${url}/locks/api/stream?prefix=`)).toBe(200);
    client.close();
  });
});

describe('LockBoardModule.forRoot', () => {
  it.each<[LockBoardOptions, string]>([
    [{}, 'unguarded: true'],
    [{ guards: [] }, 'unguarded: true'],
    [{ guards: [], unguarded: false }, 'unguarded: true'],
    [{ guards: [AdminGuard], unguarded: true }, 'exclude each other'],
    [{ path: '', unguarded: true }, 'path'],
    [{ path: '/', unguarded: true }, 'path'],
    [{ path: ':tenant/locks', unguarded: true }, 'path'],
    [{ path: 'locks/*', unguarded: true }, 'path'],
  ])('refuses %j', (options, text) => {
    expect(() => LockBoardModule.forRoot(options)).toThrow(LockConfigurationError);
    expect(() => LockBoardModule.forRoot(options)).toThrow(text);
  });
});
