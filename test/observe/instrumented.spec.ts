import { expect, it } from '@jest/globals';
import { ChildScript } from '../support/child-script.js';
import { RedisServer } from '../support/redis-server.js';

const SCRIPT = new URL('./instrumented-process.ts', import.meta.url);

it('a request has one span, beside the instrumentation of ioredis: Holdfast has none of requests', async () => {
  const server = await RedisServer.start();
  try {
    const spans = JSON.parse(await new ChildScript(SCRIPT, [server.url]).output) as object[];
    expect(spans).toEqual([
      { name: 'evalsha', parent: 'acquire', text: 'evalsha' },
      { name: 'acquire', parent: 'caller' },
      { name: 'evalsha', parent: 'caller', text: 'evalsha' },
      { name: 'run', parent: 'caller' },
      { name: 'caller', parent: '' },
    ]);
  } finally {
    await server.stop();
  }
});
