import type { Server } from './doctor/server.js';
import { printable } from './text/printable.js';

/** A server may have a hundred million keys. */
const LONGEST_MS = 2_000;
const A_STEP = 1_000;
const MOST_DATABASES = 16;
const MOST_NAMED = 5;

const INDEX = '{instances}';

/** Where services report at this server, other than where it was looked: databases and prefixes, for people. */
export async function placesOf(server: Server): Promise<readonly string[]> {
  const { runtime, database: own, prefix: ownPrefix } = server;
  const until = runtime.now().monotonicMs + LONGEST_MS;
  const places: string[] = [];
  for (const database of await databasesOf(server)) {
    if (!(await selected(server, database))) continue;
    for (const prefix of await prefixesIn(server, until))
      if (database !== own || prefix !== ownPrefix)
        places.push(`database ${String(database)}, prefix ${printable(prefix)}`);
  }
  await selected(server, own);
  return places;
}

/** A sentence for a place where no service reports. */
export function nobodyReports(places: readonly string[]): string {
  const question = 'No service reports here: another server, database or prefix?';
  if (places.length === 0) return question;
  const some = places.slice(0, MOST_NAMED).join('; ');
  return `${question} Services report in ${some}${places.length > MOST_NAMED ? '; …' : ''}.`;
}

/** What to give; the client of the application may add a prefix of its own. */
export const PREFIX_HINT =
  'Give the database in the URL, and with --prefix the whole prefix: the keyPrefix of the ioredis client, if it has one, followed by that of Holdfast.';

/** The databases that have keys. A Cluster has one; INFO may be forbidden. */
async function databasesOf(server: Server): Promise<readonly number[]> {
  const info = server.isClusterNode ? undefined : await server.info('keyspace');
  const text = info?.status === 'answered' ? String(info.value) : '';
  const found = [...text.matchAll(/^db(\d+):/gm)].map(([, number]) => Number(number));
  return found.length === 0 ? [server.database] : found.slice(0, MOST_DATABASES);
}

async function selected(server: Server, database: number): Promise<boolean> {
  if (server.isClusterNode) return true;
  return (await server.ask('select', database)).status === 'answered';
}

async function prefixesIn(server: Server, until: number): Promise<ReadonlySet<string>> {
  const prefixes = new Set<string>();
  let cursor = '0';
  do {
    const answer = await server.ask('scan', cursor, 'match', `*${INDEX}`, 'count', A_STEP);
    if (answer.status === 'failed') break;
    const [next, names] = answer.value as [string, readonly string[]];
    cursor = next;
    for (const name of names) prefixes.add(name.slice(0, -INDEX.length));
  } while (cursor !== '0' && server.runtime.now().monotonicMs < until);
  return prefixes;
}
