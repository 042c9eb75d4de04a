import { Cluster } from 'ioredis';
import type { ConnectionOptions } from 'node:tls';
import type { LockModuleOptions } from 'nestjs-holdfast';

export interface Server {
  readonly host: string;
  readonly port: number;
  readonly tls: ConnectionOptions;
}

/** The token that is valid now, as a service would issue it. */
export const token = { value: '' };

const iamToken = (): Promise<string> => Promise.resolve(token.value);
const entraToken = iamToken;

// recipe
export function elastiCache({ host, port, tls }: Server): LockModuleOptions {
  return {
    redis: new Cluster([{ host, port }], {
      lazyConnect: true, // Holdfast opens connections of its own
      dnsLookup: (address, done) => done(null, address), // certificates name hosts, not addresses
      redisOptions: { tls },
    }),
    credentials: async () => ({ username: 'locks', password: await iamToken() }),
  };
}

// recipe
export const memorystore = (server: Server, password: string): LockModuleOptions => ({
  redis: { ...server, password }, // port 6378; tls: { ca } with the authority of the instance
});

export const azure = (server: Server, objectId: string): LockModuleOptions => ({
  redis: server, // port 10000; tls: {}
  credentials: async () => ({ username: objectId, password: await entraToken() }),
});

export const upstash = (url: string): LockModuleOptions => ({
  redis: url, // rediss://default:<password>@<name>.upstash.io:6379
});
