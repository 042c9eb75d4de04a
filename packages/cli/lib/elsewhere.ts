import type { Server } from './doctor/server.js';
import { optionsOfPlace, type Place } from './place-options.js';
import type { Target } from './target.js';
import { shellWord } from './text/shell-word.js';

/** A server may have a hundred million keys. */
const LONGEST_MS = 2_000;
const A_STEP = 1_000;
const MOST_DATABASES = 16;
const MOST_NAMED = 5;

const INDEX = '{instances}';

/** Where services report at these servers, other than where it was looked. */
export async function placesElsewhere(servers: readonly Server[]): Promise<readonly Place[]> {
  const all = (await Promise.all(servers.map(placesAt))).flat();
  const named = new Map(all.map((place) => [`${String(place.database)} ${place.prefix}`, place]));
  return [...named.values()];
}

async function placesAt(server: Server): Promise<readonly Place[]> {
  const { runtime, database: own, prefix: ownPrefix } = server;
  const until = runtime.now().monotonicMs + LONGEST_MS;
  const places: Place[] = [];
  for (const database of await databasesOf(server)) {
    if (!(await selected(server, database))) continue;
    for (const prefix of await prefixesIn(server, until))
      if (database !== own || prefix !== ownPrefix) places.push({ database, prefix });
  }
  await selected(server, own);
  return places;
}

/** What is printed where no service reports. */
interface Elsewhere {
  readonly text: string;
  /** What to give instead; missing if no service was found. */
  readonly remedy?: string;
}

/** A wrong database or prefix looks like a place where nothing happens. */
export function elsewhere(
  target: Target,
  [server]: readonly Server[],
  places: readonly Place[],
  keys: 'no keys' | 'keys',
): Elsewhere {
  const here = keys === 'no keys' ? '0 keys and 0 services here' : 'No service reports here';
  const question = `${here}: another server, database or prefix?`;
  if (server === undefined || places.length === 0) return { text: question };
  const some = places.slice(0, MOST_NAMED);
  const rest = places.length > MOST_NAMED ? '; …' : '';
  const names = some.map(
    ({ database, prefix }) => `database ${String(database)}, prefix ${shellWord(prefix)}`,
  );
  const options = some.map((place) => optionsOfPlace(target, server, place));
  return {
    text: `${question} Services report in ${names.join('; ')}${rest}.`,
    remedy: `${PREFIX_HINT} Give ${options.join(' or ')}`,
  };
}

/** The client of the application may add a prefix of its own. */
const PREFIX_HINT =
  'The prefix is the keyPrefix of the ioredis client, if it has one, followed by that of Holdfast.';

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
