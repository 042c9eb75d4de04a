import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { Cluster } from 'ioredis';
import { commandClassOf } from '../../lib/store/redis/client/ioredis/command-class.js';
import { IoredisCluster } from '../../lib/store/redis/client/ioredis/ioredis-client.js';
import type { ClientEvents } from '../../lib/store/redis/client/redis-client.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const ignore = (): void => undefined;
const NO_EVENTS: ClientEvents = {
  ...{ onConnect: ignore, onReady: ignore, onError: ignore },
  ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
};

describe('a client of ioredis', () => {
  it.each([
    ['idle', 'wait'],
    ['connecting', 'connecting'],
    ['connecting', 'connect'],
    ['connecting', 'reconnecting'],
    ['connecting', 'close'],
    ['ready', 'ready'],
    ['ended', 'end'],
  ])('is %s while it says %s', (state, status) => {
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    const client = new IoredisCluster(cluster, NO_EVENTS, new VirtualRuntime());
    Object.assign(cluster, { status });
    expect(client.state).toBe(state);
  });

  it('that makes no command of a call cannot be used', () => {
    const mute = { call: ignore } as unknown as Redis;
    expect(() => commandClassOf(mute)).toThrow('the client has made no command');
  });
});
