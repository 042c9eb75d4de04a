import { describe, expect, it } from '@jest/globals';
import { freePort } from '../../support/free-port.js';
import { Program } from './program.js';

describe('npm run sample:transports', () => {
  it('shows what the client of each transport sees, and no key', async () => {
    const sample = new Program('sample/transports/src/main.ts', {
      GRPC_URL: `127.0.0.1:${String(await freePort())}`,
    });
    expect(await sample.ended).toEqual({ code: 0, signal: null });
    const seen = new Map(
      Array.from(sample.output.matchAll(/^transports: (.*?): (.*)$/gm), ([, what, text]) => [
        what,
        text,
      ]),
    );
    for (const transport of ['HTTP', 'GraphQL', 'gRPC', 'WebSocket'])
      expect(seen.get(`${transport}, free`)).toContain('order 42 is paid');
    expect(seen.get('HTTP, locked')).toMatch(/^409 Retry-After: \d+ .*"LOCK_NOT_ACQUIRED"/);
    expect(seen.get('GraphQL, locked')).toMatch(/"code":"LOCK_NOT_ACQUIRED","retryAfterMs":\d+/);
    expect(seen.get('gRPC, locked')).toMatch(/^ABORTED .*"retry-after-ms":"\d+"/);
    expect(seen.get('WebSocket, locked')).toMatch(/"statusCode":409.*"cause":\{"pattern":"pay"/);
    expect(sample.output).not.toMatch(/order:42/);
  }, 60_000);
});
