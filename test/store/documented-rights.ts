import { readFile } from 'node:fs/promises';
import type { RedisServer } from '../support/redis-server.js';

const NEWER = 'Redis 7.2';

/** The rights that docs/redis.md lists for a Redis user: those for everybody, for the version of the server, and below these headings. */
export async function documentedRights(
  server: RedisServer,
  ...headings: readonly string[]
): Promise<readonly string[]> {
  const page = await readFile(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const lines = [...page.matchAll(/^# (.+)\nACL SETUSER locks (.+)$/gm)];
  // Valkey names the version of Redis that it is compatible with.
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(String(await server.command('INFO')));
  const [major, minor] = [Number(version?.[1]), Number(version?.[2])];
  const isNewer = major > 7 || (major === 7 && minor >= 2);
  return ['Always', ...(isNewer ? [NEWER] : []), ...headings].flatMap((heading) => {
    const [, , rights] = lines.find(([, found]) => found?.startsWith(heading)) ?? [];
    if (rights === undefined) throw new Error(`docs/redis.md lists no rights for: ${heading}`);
    return rights.split(' ');
  });
}
