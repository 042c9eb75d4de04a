import { afterEach, describe, expect, it } from '@jest/globals';
import { VersioningType, type CanActivate } from '@nestjs/common';
import { LockBoardModule } from 'nestjs-holdfast/board';
import { ADAPTERS, closeHttpApps, startHttpApp } from '../nest/http-app.js';
import { KEY, released, StagedData } from './staged.js';

afterEach(closeHttpApps);
const own = (url: string) => ({ headers: { 'x-holdfast-board': '1', origin: url } });

describe.each(ADAPTERS)('the board on %s', (adapter) => {
  const start = (allow = true) => {
    const guard: CanActivate = { canActivate: () => allow };
    const imports = [StagedData, LockBoardModule.forRoot({ guards: [guard] })];
    return startHttpApp(
      { imports },
      {
        adapter,
        configure: (app) =>
          app.setGlobalPrefix('ops').enableVersioning({ type: VersioningType.URI }),
      },
    );
  };

  it.each(['', '/', '/assets/page.js', '/api/locks', '/api/stream'])('guards %s', async (path) => {
    expect((await (await start(false)).get(`/ops/locks${path}`)).status).toBe(403);
  });

  it('serves the page under a prefix, with and without a slash', async () => {
    const { get } = await start();
    for (const [path, base] of [
      ['/ops/locks', './locks/'],
      ['/ops/locks/', './'],
    ] as const) {
      const { status, body, headers } = await get(path);
      expect(status).toBe(200);
      expect(body).toContain(`<base href="${base}">`);
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    }
    expect((await get('/ops/locks/assets/page.js')).headers.get('content-type')).toContain(
      'text/javascript',
    );
    expect((await get('/ops/locks/nothing')).status).toBe(404);
  });

  it('releases for the page itself only', async () => {
    const { post, url } = await start(),
      path = '/ops/locks/api/release',
      why = { key: KEY, reason: 'stuck' };
    expect((await post(path, why)).status).toBe(403);
    expect((await post(path, why, own('http://evil.example'))).status).toBe(403);
    expect((await post(path, { key: KEY }, own(url))).status).toBe(400);
    expect((await post(path, why, own(url))).body).toEqual({ released: true });
    expect(released.at(-1)).toEqual({ ...why, by: 'board' });
  });

  it('streams a snapshot, and ends with the application', async () => {
    const { url, app } = await start();
    const response = await fetch(`${url}/ops/locks/api/stream`);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('event: snapshot')) text += (await reader.read()).value;
    await app.close();
    while (!(await reader.read()).done);
  });
});

it('refuses to be unguarded', () => {
  expect(() => LockBoardModule.forRoot({})).toThrow('unguarded: true');
});
