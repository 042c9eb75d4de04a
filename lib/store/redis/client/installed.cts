import type * as Ioredis from 'ioredis';

/** A package of node-redis, as far as a URL needs it. */
interface NodeRedisPackage {
  createClient(options: object): object;
  createCluster(options: {
    readonly rootNodes: readonly { readonly url: string }[];
    readonly defaults: object;
  }): object;
}

interface Packages {
  readonly ioredis: typeof Ioredis;
  readonly iovalkey: typeof Ioredis;
  readonly redis: NodeRedisPackage;
  readonly '@redis/client': NodeRedisPackage;
}

/* eslint-disable @typescript-eslint/no-require-imports -- an import could not be caught */

/** Each name is written out inside of `try`, so that a bundler finds what is installed and does without the rest. */
function required(name: keyof Packages): unknown {
  try {
    switch (name) {
      case 'ioredis':
        return require('ioredis');
      case 'iovalkey':
        return require('iovalkey');
      case 'redis':
        return require('redis');
      case '@redis/client':
        return require('@redis/client');
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

/**
 * A package with clients, loaded when it is first asked for; `undefined` where the application has not installed it. CommonJS: an ES module
 * can do nothing about an import that fails.
 */
function installed<Name extends keyof Packages>(name: Name): Packages[Name] | undefined {
  return required(name) as Packages[Name] | undefined;
}

export = installed;
