import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChildApplication, START_LIMIT_MS } from '../support/child-application.js';

const APPLICATIONS = [
  ['middleware', 'express'],
  ['middleware', 'fastify'],
  ['guard', 'express'],
  ['interceptor', 'fastify'],
] as const;

describe.each(APPLICATIONS)(
  'the tenant that a %s of nestjs-cls notes, on %s',
  (mounted, adapter) => {
    let app: ChildApplication;

    beforeAll(async () => {
      const script = new URL('./application.ts', import.meta.url);
      app = await ChildApplication.start(script, [adapter, mounted]);
    }, START_LIMIT_MS);
    afterAll(() => app.close());

    const post = async (path: string, tenant?: string): Promise<number> => {
      const headers = tenant === undefined ? undefined : { 'x-tenant': tenant };
      const { status } = await fetch(app.url + path, { method: 'POST', headers });
      return status;
    };

    it.each([
      ['a key function, from what is injected into its object', '/service/42'],
      ['a key function of a handler', '/handler/42'],
      ['a key function of a controller that Nest makes for each request', '/request-scoped/42'],
      ['a key function that several classes share', '/shared/42'],
      ['an arrow function', '/arrow/42'],
      ['a template with the user', '/user/42'],
      ['a template with a header', '/header/42'],
      ['a template with a parameter that has a decorator of its own', '/parameter/42'],
    ])('keeps out its own calls, and those of no other tenant: %s', async (_what, path) => {
      const first = post(path, 'acme');
      await post('/stopped');
      expect(await app.ask('is-held', 'acme:order:42')).toBe(true);
      expect(await post(path, 'acme')).toBe(409);
      expect(await post(path, 'globex')).toBe(201);
      await post('/go-on');
      expect(await first).toBe(201);
      expect(app.log).toBe('');
    });

    it('has to be known', async () => {
      expect(await post('/service/42')).toBe(500);
      for (const path of ['/handler/42', '/arrow/42', '/user/42', '/header/42', '/parameter/42'])
        expect([path, await post(path)]).toEqual([path, path === '/arrow/42' ? 500 : 400]);
    });
  },
);
