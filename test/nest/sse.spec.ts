import { Controller, Param, Sse, type MessageEvent } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-holdfast';
import { concat, NEVER, of, type Observable } from 'rxjs';
import { freePort } from '../support/free-port.js';
import { ADAPTERS, closeHttpApps, startHttpApp } from './http-app.js';

@Controller()
class Feeds {
  @Sse('feeds/:id')
  @WithLock('feed:<id>', { returns: 'observable' })
  feed(@Param('id') id: string): Observable<MessageEvent> {
    return concat(of({ data: `begins ${id.length.toString()}` }), NEVER);
  }

  @Sse('skipped/:id')
  @WithLock('feed:<_id>', { returns: 'observable', onLocked: 'skip' })
  skipped(@Param('id') _id: string): Observable<MessageEvent> {
    return of({ data: 'ran' });
  }

  @Sse('skipped-raw/:id')
  @WithLock('feed:<request.params.id>', { returns: 'observable', onLocked: 'skip' })
  skippedRaw(): Observable<MessageEvent> {
    return of({ data: 'ran' });
  }
}

afterEach(closeHttpApps);

describe.each(ADAPTERS)('server-sent events on %s', (adapter) => {
  const start = () => startHttpApp({ controllers: [Feeds] }, { adapter });

  it('say that they were refused, and no key', async () => {
    const { url, locks } = await start();
    await locks.acquire('feed:s3cret');
    const text = await (await fetch(`${url}/feeds/s3cret`)).text();
    expect(text).toContain('Somebody else is working on this right now. Try again later.');
    expect(text).not.toContain('s3cret');
  });

  it.each(['skipped', 'skipped-raw'])('are none if the call is skipped (%s)', async (route) => {
    const { url, locks } = await start();
    const lock = await locks.acquire('feed:1');
    const skipped = await fetch(`${url}/${route}/1`);
    expect(skipped.status).toBe(200);
    expect((await skipped.text()).trim()).toBe('');
    await lock.release();
    expect(await (await fetch(`${url}/${route}/1`)).text()).toContain('data: ran');
  });

  it('say that the store is out, and no address', async () => {
    const redis = `redis://127.0.0.1:${String(await freePort())}`;
    const { url } = await startHttpApp({ controllers: [Feeds] }, { adapter, options: { redis } });
    const text = await (await fetch(`${url}/feeds/s3cret`)).text();
    expect(text).toContain('The lock store is not available. Try again later.');
    expect(text).not.toMatch(/s3cret|127\.0\.0\.1|ECONNREFUSED/);
  });

  it('end when their lock is lost, and say so, and no key', async () => {
    const { url, locks } = await start();
    const response = await fetch(`${url}/feeds/s3cret`);
    let text = '';
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes as Uint8Array).toString();
      if (text.includes('begins 6')) locks.lose('feed:s3cret');
    }
    expect(text).toContain('event: error');
    expect(text).toContain('The lock was lost while the work ran.');
    expect(text).not.toContain('s3cret');
  });
});
