import { describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { commandClassOf } from '../../lib/store/redis/client/ioredis/command-class.js';
import { IoredisCluster } from '../../lib/store/redis/client/ioredis/ioredis-client.js';
import {
  logsInWith,
  providedLogin,
  statedLogin,
} from '../../lib/store/redis/client/ioredis/login.js';
import type { ClientEvents } from '../../lib/store/redis/client/redis-client.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

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

describe('a master of a Cluster, with ioredis,', () => {
  it('has received as many bytes as its stream, and none before there is one', () => {
    const redis = new Redis({ lazyConnect: true });
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    Object.assign(cluster, { nodes: () => [redis] });
    const client = new IoredisCluster(cluster, NO_EVENTS, new VirtualRuntime());
    const [master] = client.masters();
    expect(master?.arrived).toBe(0);
    Object.assign(redis, { stream: { bytesRead: 7 } });
    expect(master?.arrived).toBe(7);
  });
});

describe('a login, with ioredis,', () => {
  const stated = { username: 'user', password: 'first', sentinelPassword: 'other' };

  it('is what is stated at that moment, also of a copy of the client', () => {
    let now = stated;
    const redis = new Redis({ lazyConnect: true });
    logsInWith(
      statedLogin(() => now),
      redis,
    );
    now = { ...stated, password: 'second' };
    expect(redis.options.password).toBe('second');
    expect({ ...redis.options }).toMatchObject(now);
  });

  it('has the stated passwords for secrets', () => {
    expect(statedLogin(() => stated).secrets()).toEqual(['first', 'other']);
  });

  it('has what is stated at the sentinels where "credentials" return nothing for them', async () => {
    const like = new Redis({ lazyConnect: true });
    const login = providedLogin({
      provide: () => ({ username: 'given', password: 'token' }),
      stated: statedLogin(() => stated),
      ...{ like, runtime: new VirtualRuntime() },
    });
    expect(String(login.read().username)).toBe('default');
    expect(login.read().sentinelPassword).toBe('other');
    login.beforeRetry?.();
    await settled();
    const { username, password, sentinelPassword } = login.read();
    expect([username, password, sentinelPassword].map(String)).toEqual(['given', 'token', 'other']);
    expect(login.secrets()).toEqual(['first', 'other', 'token']);
  });
});
