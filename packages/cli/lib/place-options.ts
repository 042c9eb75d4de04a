import { redact } from 'nestjs-holdfast/tools';
import type { Target } from './target.js';
import { shellWord } from './text/shell-word.js';

/** Where locks may be at a server. */
export interface Place {
  readonly database: number;
  readonly prefix: string;
}

const SOCKET = /^(?:redis\+)?unix:/;

/** The options that lead to another place at the same server, as the user can paste them. They have no passwords. */
export function optionsOfPlace(
  { urls, isCluster }: Target,
  from: Place,
  { database, prefix }: Place,
): string {
  const redis =
    database === from.database
      ? []
      : urls.flatMap((url) => ['--redis', withDatabase(redact(url), database)]);
  const words = [
    ...redis,
    ...(redis.length > 0 && isCluster ? ['--cluster'] : []),
    ...(prefix === from.prefix ? [] : ['--prefix', prefix]),
  ];
  return words.map(shellWord).join(' ');
}

const withDatabase = (url: string, database: number): string =>
  SOCKET.test(url)
    ? `${url.replace(/\?.*$/s, '')}?db=${String(database)}`
    : url.replace(/^(\w+:\/\/[^/?#]*)[^?#]*/, `$1/${String(database)}`);

/** What to give instead of a replica. */
export function masterRemedy({ urls, redis }: Target, replica: string, master: string): string {
  const index = redis.places.findIndex(({ name }) => name === replica);
  const url = redact(urls[index] ?? urls[0] ?? '');
  const there = SOCKET.test(url)
    ? `redis://${master}`
    : url.replace(/^(\w+:\/\/(?:[^@/]*@)?)[^/?#]*/, `$1${master}`);
  return `Give the address of the master: --redis ${shellWord(there)}`;
}
