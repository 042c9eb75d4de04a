/** Five masters for the specs of quorums: each test finds them running, and empty. */
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, type LockEvents, type LockModuleOptions } from 'nestjs-holdfast';
import { inspect } from 'node:util';
import type { Script } from '../../../lib/store/redis/scripts/script.js';
import { eventually } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';
import { watchRejections } from '../../support/scripted-service.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

export const MINUTE_MS = 60_000;
/** Shorter than the waits and the leases of which a test says that nobody waits for their end. */
export const LIMIT_MS = 25_000;

export const services: LockService[] = [];
const proxies: TcpProxy[] = [];
let five: readonly RedisServer[] = [];

export const at = <T>(list: readonly T[], index: number): T => {
  const item = list[index];
  if (item === undefined) throw new Error(`There is no number ${index}.`);
  return item;
};

export const masters = (count: number): readonly RedisServer[] => five.slice(0, count);

/** The three that most of these tests need. */
export const three = (): readonly [RedisServer, RedisServer, RedisServer] => [
  at(five, 0),
  at(five, 1),
  at(five, 2),
];

export const urlOf = ({ port }: { readonly port: number }): string => `redis://127.0.0.1:${port}`;
export const nameOf = ({ port }: { readonly port: number }): string => `127.0.0.1:${port}`;

export async function open(
  nodes: readonly { readonly port: number }[],
  options: Partial<LockModuleOptions> = {},
): Promise<LockService> {
  const service = new LockService({ redis: nodes.map(urlOf), ttl: MINUTE_MS, ...options });
  services.push(service);
  await service.open();
  return service;
}

export async function proxied(server: RedisServer): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(server.port);
  proxies.push(proxy);
  return proxy;
}

/** Somebody else's token, on these nodes. */
export async function plant(
  nodes: readonly RedisServer[],
  key: string,
  token = 'somebody else',
): Promise<void> {
  for (const node of nodes) await node.command('SET', `lock:${key}`, token, 'PX', MINUTE_MS);
}

/** Whose the key is, on each node. */
export const holdersOf = (nodes: readonly RedisServer[], key: string): Promise<unknown[]> =>
  Promise.all(nodes.map((node) => node.command('GET', `lock:${key}`)));

/** All keys that are on these nodes, but the fences, which outlive their leases. */
export async function leftOn(nodes: readonly RedisServer[]): Promise<readonly string[]> {
  const lists = await Promise.all(nodes.map((node) => node.namesInUse()));
  return lists.flat().filter((name) => !name.endsWith(':fence'));
}

export const expectNothingLeftOn = (nodes: readonly RedisServer[]): Promise<unknown> =>
  eventually(async () => {
    expect(await leftOn(nodes)).toEqual([]);
  });

/** Whose the key is on this node, once it has voted: the others may have decided before. */
export const holderOn = (node: RedisServer, key: string): Promise<unknown> =>
  eventually(() => node.command('GET', `lock:${key}`));

/** Until somebody stands in line for the key on a majority of these nodes: those decide, and one of the others may have refused the holder. */
export const standsInLine = (nodes: readonly RedisServer[], key: string): Promise<unknown> =>
  eventually(async () => {
    const lines = await Promise.all(
      nodes.map((node) => node.command('EXISTS', `{lock:${key}}:queue`)),
    );
    expect(lines.filter((line) => line === 1).length).toBeGreaterThan(nodes.length / 2);
  });

export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const value = await promise.catch((error: unknown) => ({ error }));
  if (typeof value === 'object' && value !== null && 'error' in value) return value.error;
  throw new Error(`It did not fail, but gave ${inspect(value)}.`);
}

export const aborted = (signal: AbortSignal): Promise<unknown> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => {
        signal.addEventListener('abort', resolve, { once: true });
      });

export function lossesOf(service: LockService): LockEvents['lost'][] {
  const losses: LockEvents['lost'][] = [];
  service.on('lost', (event) => losses.push(event));
  return losses;
}

/** How often a script was sent to the server while `work` ran. */
export async function timesSent(
  script: Script,
  server: RedisServer,
  work: () => Promise<unknown>,
): Promise<number> {
  const commands = await server.commandsSentDuring(work);
  return commands.filter(([, first]) => first === script.sha || first === script.lua).length;
}

export const growing = (tokens: readonly number[]): readonly number[] =>
  [...new Set(tokens)].sort((one, other) => one - other);

/** Starts the servers before the tests of a file, and sets them right after each. */
export function useFiveMasters(): void {
  const handles = watchHandles();
  const rejections = watchRejections();

  beforeAll(async () => {
    Logger.overrideLogger(false);
    five = await Promise.all([1, 2, 3, 4, 5].map(() => RedisServer.start()));
  }, MINUTE_MS);

  afterEach(async () => {
    for (const server of five) if (server.isRunning) server.thaw();
    for (const proxy of proxies) proxy.resume();
    await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
    await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
    for (const server of five) {
      if (!server.isRunning) await server.restart();
      await server.command('FLUSHALL');
    }
  }, MINUTE_MS);

  afterAll(async () => {
    await Promise.all(five.map((server) => server.stop()));
    await handles.expectNoneOpen();
    await rejections.expectNone();
  }, MINUTE_MS);
}
