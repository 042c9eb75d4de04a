/**
 * Packages of Redis clients: a client of each as an application makes it, and the bare commands of a lock with it. `close` ends what
 * keeps the process alive.
 */
const RELEASE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/**
 * @typedef {object} Connected
 * @property {object} client what `LockModule.forRoot({ redis })` is given
 * @property {(key: string, token: string, ttl: number) => Promise<boolean>} set
 * @property {(key: string, token: string) => Promise<unknown>} compareAndDelete
 */

const likeIoredis = (load) => async (url) => {
  const { Redis } = await load();
  const client = new Redis(url, { lazyConnect: true });
  await client.connect();
  client.defineCommand('compareAndDelete', { lua: RELEASE, numberOfKeys: 1 });
  return {
    client,
    set: async (key, token, ttl) => (await client.set(key, token, 'PX', ttl, 'NX')) !== null,
    compareAndDelete: (key, token) => client.compareAndDelete(key, token),
  };
};

const nodeRedis = (load) => async (url) => {
  const { createClient, defineScript } = await load();
  const compareAndDelete = defineScript({
    SCRIPT: RELEASE,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, key, token) {
      parser.pushKey(key);
      parser.push(token);
    },
    transformReply: (reply) => reply,
  });
  const client = createClient({ url, scripts: { compareAndDelete } });
  await client.connect();
  return {
    client,
    set: async (key, token, ttl) =>
      (await client.set(key, token, {
        condition: 'NX',
        expiration: { type: 'PX', value: ttl },
      })) !== null,
    compareAndDelete: (key, token) => client.compareAndDelete(key, token),
  };
};

/** GLIDE has no defined commands: its script is sent by its hash, as those are. */
const glide = async (url) => {
  const { GlideClient, Script } = await import('@valkey/valkey-glide');
  const { hostname: host, port } = new URL(url);
  const client = await GlideClient.createClient({ addresses: [{ host, port: Number(port) }] });
  const script = new Script(RELEASE);
  return {
    client,
    set: async (key, token, ttl) =>
      (await client.set(key, token, {
        conditionalSet: 'onlyIfDoesNotExist',
        expiry: { type: 'PX', count: ttl },
      })) !== null,
    compareAndDelete: (key, token) => client.invokeScript(script, { keys: [key], args: [token] }),
  };
};

/** @type {Readonly<Record<string, (url: string) => Promise<Connected>>>} */
export const packages = {
  'ioredis 6': likeIoredis(() => import('ioredis')),
  'ioredis 5': likeIoredis(() => import('ioredis5')),
  iovalkey: likeIoredis(() => import('iovalkey')),
  'node-redis 6': nodeRedis(() => import('redis')),
  'node-redis 5': nodeRedis(() => import('redis5')),
  'valkey-glide': glide,
};
