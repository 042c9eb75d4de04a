import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { TransferRequest } from 'nestjs-holdfast';
import {
  newOwnerToken,
  tokenIn,
  upgradedToken,
  type HoldMode,
} from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { RedisServer } from '../support/redis-server.js';
import { openStore, type OpenStore } from './open-store.js';

const KEYS = ['key'];
const TTL_MS = 30_000;

let server: RedisServer;
let redis: Redis;
let store: OpenStore['store'];

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
  ({ store } = await openStore({ redis: server.url }));
});

beforeEach(async () => {
  await redis.flushall();
});

afterAll(async () => {
  redis.disconnect();
  await store.close();
  await server.stop();
});

const newToken = (mode: HoldMode): string => newOwnerToken(systemRuntime, { mode });

/** What the store says to one who asks for the key. */
const asked = async (token: string): Promise<string> =>
  (await store.acquire({ keys: KEYS, token, ttlMs: TTL_MS })).status;

const upgrade = async (token: string, to: string): Promise<string> =>
  (await store.upgrade!({ keys: KEYS, token: tokenIn('upgradeable', token), to, ttlMs: TTL_MS }))
    .status;

/** A request to hold as weaker what is held alone. */
const downgrade = (token: string, mode: HoldMode): TransferRequest => ({
  ...{ keys: KEYS, token, to: tokenIn(mode, token), ttlMs: TTL_MS, lastToken: 0 },
  phase: 1,
});

describe('a request to downgrade a lock that Redis carries out late, over a connection that was replaced,', () => {
  it('does not weaken the lock when it was upgraded meanwhile', async () => {
    const token = newToken('exclusive');
    await asked(token);
    const first = downgrade(token, 'upgradeable');
    expect(await store.transfer!(first)).toEqual({ status: 'transferred' });
    const upgraded = upgradedToken(token, 1);
    expect(await upgrade(token, upgraded)).toBe('granted');
    expect((await store.transfer!(first)).status).toBe('lost');
    expect(await redis.get('lock:key')).toBe(upgraded);
    expect(await asked(newToken('shared'))).toBe('held');
    const [renewed] = await store.extend([
      { keys: KEYS, token: upgraded, ttlMs: TTL_MS, fencingToken: 1, validForMs: TTL_MS },
    ]);
    expect(renewed?.status).toBe('extended');
  });

  it('does not weaken it either when it was to take back an upgrade before the last one', async () => {
    const token = newToken('upgradeable');
    await asked(token);
    const [first, second] = [upgradedToken(token, 1), upgradedToken(token, 2)];
    expect(await upgrade(token, first)).toBe('granted');
    const takesBack = downgrade(first, 'upgradeable');
    expect(await upgrade(token, second)).toBe('granted');
    expect((await store.transfer!(takesBack)).status).toBe('lost');
    expect(await upgrade(token, first)).toBe('lost');
    expect(await redis.get('lock:key')).toBe(second);
    expect(await store.transfer!(downgrade(second, 'upgradeable'))).toMatchObject({
      status: 'transferred',
    });
    expect(await asked(newToken('shared'))).toBe('granted');
  });

  it('takes an upgrade back whichever of those that had no answer was carried out', async () => {
    const token = newToken('upgradeable');
    await asked(token);
    expect(await upgrade(token, upgradedToken(token, 1))).toBe('granted');
    const takesBack = downgrade(upgradedToken(token, 3), 'upgradeable');
    expect((await store.transfer!(takesBack)).status).toBe('transferred');
    expect(await asked(newToken('shared'))).toBe('granted');
  });

  it('takes nothing from another upgradeable holder, sent twice', async () => {
    const token = newToken('upgradeable');
    await asked(token);
    const request = { ...downgrade(token, 'shared'), token };
    await store.transfer!(request);
    expect(await asked(newToken('upgradeable'))).toBe('granted');
    expect((await store.transfer!(request)).status).toBe('transferred');
    expect(await asked(newToken('upgradeable'))).toBe('held');
  });
});

it('a renewal of a downgraded lock whose downgrade did not reach Redis leaves the lock exclusive: its fencing token is not known there', async () => {
  const token = newToken('exclusive');
  await asked(token);
  const { to, ...request } = downgrade(token, 'shared');
  const renewal = { ...request, token: to, fencingToken: 1, validForMs: TTL_MS };
  expect(await store.extend([renewal])).toEqual([{ status: 'extended' }]);
  expect(await asked(newToken('shared'))).toBe('held');
  expect((await store.transfer!({ ...request, to, phase: 7 })).status).toBe('transferred');
  const reader = await store.acquire({ keys: KEYS, token: newToken('shared'), ttlMs: TTL_MS });
  expect(reader).toMatchObject({ status: 'granted', fencingToken: 7 });
});
