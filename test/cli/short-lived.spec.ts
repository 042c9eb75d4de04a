import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Finding } from '../../packages/cli/lib/doctor/finding.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { run } from './program.js';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(async () => {
  await server.stop();
});

/** What the doctor complains of over a proxy, but for how long an answer takes: this machine may be busy. */
async function complaintsOver(proxy: TcpProxy): Promise<readonly Finding[]> {
  const url = `redis://127.0.0.1:${proxy.port}`;
  const { stdout } = await run(['doctor', '--json', '--redis', url]);
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
  return findings.filter(({ check, level }) => level !== 'ok' && check !== 'round trip');
}

const PERSISTENCE = { check: 'persistence', level: 'warning' };

describe('doctor over connections that end early', () => {
  it.each([
    ...['replication', 'memory', 'zremrangebyrank', 'appendfsync', 'time', 'subscribe', 'scan'],
    ...['{instances}', 'evalsha'],
  ])('does not report that its own connection was closed: at %s', async (command) => {
    const proxy = await TcpProxy.start(server.port);
    try {
      const cut = proxy.whenClientSends(command).then(() => {
        proxy.cut();
      });
      const found = await complaintsOver(proxy);
      await cut;
      expect(found).toMatchObject([PERSISTENCE]);
    } finally {
      await proxy.stop();
    }
  });

  it('says that each connection ends at once, where this is so', async () => {
    const proxy = await TcpProxy.start(server.port);
    try {
      const refused = proxy.whenClientSends('zremrangebyrank').then(() => {
        proxy.refuse();
      });
      const found = await complaintsOver(proxy);
      await refused;
      expect(found.map(({ check }) => check)).toEqual([
        ...['persistence', 'pub/sub', 'services', 'grants', 'grants'],
      ]);
      for (const { text } of found.slice(1, 4))
        expect(text).toContain('the server, or a proxy before it, ends each connection at once');
      expect(JSON.stringify(found)).not.toMatch(/closed|EPIPE|ECONNRESET/);
    } finally {
      await proxy.stop();
    }
  });
});
