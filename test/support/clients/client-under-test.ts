import type { Address } from './address.js';
import { nodeRedis, type NodeRedis } from './node-redis.js';
import { glide } from './glide.js';
import { likeIoredis, type LikeIoredis } from './like-ioredis.js';

/** Makes a client of the application's; `undefined` where its package cannot say what the test says. */
export type MakeClient = (address: Address) => object | undefined;

const PACKAGES: Readonly<Record<string, () => Promise<MakeClient>>> = {
  ioredis: async () => likeIoredis(await import('ioredis')),
  'ioredis-5': async () => likeIoredis((await import('ioredis-5')) as unknown as LikeIoredis),
  'node-redis': async () => nodeRedis(await import('redis'), 6),
  'node-redis-5': async () => nodeRedis((await import('redis-5')) as unknown as NodeRedis, 5),
  iovalkey: async () => likeIoredis((await import('iovalkey')) as unknown as LikeIoredis),
  glide: async () => glide(await import('@valkey/valkey-glide')),
};

const { HOLDFAST_CLIENT: name } = process.env;

/** Of the package that HOLDFAST_CLIENT names. */
export const makeClient: MakeClient | undefined = name === undefined ? undefined : await load(name);

function load(asked: string): Promise<MakeClient> {
  const found = PACKAGES[asked];
  if (found === undefined)
    throw new Error(`HOLDFAST_CLIENT is one of ${Object.keys(PACKAGES).join(', ')}.`);
  return found();
}
