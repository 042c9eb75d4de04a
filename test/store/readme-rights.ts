import { readFile } from 'node:fs/promises';
import type { RedisServer } from '../support/redis-server.js';

const NEWER = 'Redis 7.2';

/** The rights that the README lists for a Redis user: those for everybody, for the version of the server, and below these headings. */
export async function readmeRights(
  server: RedisServer,
  ...headings: readonly string[]
): Promise<readonly string[]> {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const lines = [...readme.matchAll(/^# (.+)\nACL SETUSER locks (.+)$/gm)];
  // Valkey names the version of Redis that it is compatible with.
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(String(await server.command('INFO')));
  const [major, minor] = [Number(version?.[1]), Number(version?.[2])];
  const isNewer = major > 7 || (major === 7 && minor >= 2);
  return ['Always', ...(isNewer ? [NEWER] : []), ...headings].flatMap((heading) => {
    const [, , rights] = lines.find(([, found]) => found?.startsWith(heading)) ?? [];
    if (rights === undefined) throw new Error(`The README lists no rights for: ${heading}`);
    return rights.split(' ');
  });
}
