import { printable } from '../../text/printable.js';
import { shellWord } from '../../text/shell-word.js';
import { counted } from '../../text/who.js';
import { error, ok, unknown, warning, type Found } from '../finding.js';
import { isOneSlot } from '../names.js';
import type { Server } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** A server may have a hundred million keys. */
const MOST_NAMES = 10_000;
const LONGEST_MS = 2_000;
const A_STEP = 1_000;

const MOST_NAMED = 5;

/** What is in the server under this prefix, and whether it is ours. */
export const keys: ServerCheck = {
  name: 'keys',
  async examine(server) {
    const scanned = await scan(server);
    if (scanned.problem !== undefined)
      return [unknown('What is under this prefix', scanned.problem)];
    const names = scanned.names.filter((name) => typeOf(name, server.prefix) !== undefined);
    const types = await Promise.all(names.map((name) => server.ask('type', name)));
    const typed = names.map((name, index) => ({ name, type: valueOf(types[index]) }));
    const held = typed.filter(
      ({ name, type }) => type === 'string' && kindOf(name, server.prefix) === 'main',
    );
    const lines = typed.filter(({ name }) => kindOf(name, server.prefix) === 'queue');
    const partly = scanned.isWhole ? '' : ' Not all keys were looked at: there are too many.';
    const wrong = typed.filter(
      ({ name, type }) => type !== 'none' && type !== '' && type !== typeOf(name, server.prefix),
    );
    return [
      ok(
        `${counted(held.length, 'key')} held, ${counted(lines.length, 'key')} waited for under this prefix.${partly}`,
      ),
      ...wrongTypes(wrong, server.prefix),
      ...(await foreign(
        server,
        held.slice(0, A_STEP).map(({ name }) => name),
      )),
    ];
  },
};

interface Scanned {
  readonly names: readonly string[];
  readonly isWhole: boolean;
  readonly problem?: string;
}

async function scan(server: Server): Promise<Scanned> {
  const { prefix, runtime } = server;
  const pattern = `*${prefix.replace(/[*?[\]\\^]/g, '\\$&')}*`;
  const names = new Set<string>();
  const since = runtime.now().monotonicMs;
  let cursor = '0';
  do {
    const answer = await server.ask('scan', cursor, 'match', pattern, 'count', A_STEP);
    if (answer.status === 'failed') return { names: [], isWhole: false, problem: answer.message };
    const [next, found] = answer.value as [string, readonly string[]];
    cursor = next;
    for (const name of found) names.add(name);
    if (names.size >= MOST_NAMES || runtime.now().monotonicMs - since > LONGEST_MS) break;
  } while (cursor !== '0');
  return { names: [...names], isWhole: cursor === '0' };
}

type Kind =
  | 'main'
  | 'fence'
  | 'queue'
  | 'waits'
  | 'holders'
  | 'once'
  | 'epoch'
  | 'instances'
  | 'instance'
  | 'audit';

const TYPES: Readonly<Record<Kind, string>> = {
  main: 'string',
  fence: 'string',
  queue: 'zset',
  waits: 'string',
  holders: 'zset',
  once: 'hash',
  epoch: 'string',
  instances: 'zset',
  instance: 'string',
  audit: 'stream',
};

const BESIDE = /^\{(.*)\}:(fence|queue|holders|once)(:.+)?$/s;
const BESIDE_IN_ONE_SLOT = /^(.*):\{(fence|queue|holders|once)\}(:.+)?$/s;

/** What a name stands for; `undefined` of one that is not ours. */
function kindOf(name: string, prefix: string): Kind | undefined {
  if (name.includes('<trial:')) return undefined;
  if (name === `${prefix}{epoch}`) return 'epoch';
  if (name === `${prefix}{instances}`) return 'instances';
  if (name.startsWith(`${prefix}{instances}:`)) return 'instance';
  if (name === `${prefix}{audit}`) return 'audit';
  const beside = (isOneSlot(prefix) ? BESIDE_IN_ONE_SLOT : BESIDE).exec(name);
  if (beside?.[1]?.startsWith(prefix) === true)
    return beside[3] === undefined ? (beside[2] as Kind) : 'waits';
  return name.startsWith(prefix) && !/[{}]/.test(name.slice(prefix.length)) ? 'main' : undefined;
}

function typeOf(name: string, prefix: string): string | undefined {
  const kind = kindOf(name, prefix);
  return kind && TYPES[kind];
}

const valueOf = (answer: Awaited<ReturnType<Server['ask']>> | undefined): string =>
  answer?.status === 'answered' && typeof answer.value === 'string' ? answer.value : '';

function namedIn(names: readonly string[]): string {
  const some = names.slice(0, MOST_NAMED).map((name) => `"${printable(name)}"`);
  const more = names.length - some.length;
  return some.join(', ') + (more > 0 ? ` and ${String(more)} more` : '');
}

function wrongTypes(
  wrong: readonly { readonly name: string; readonly type: string }[],
  prefix: string,
): readonly Found[] {
  if (wrong.length === 0) return [];
  const named = wrong
    .slice(0, MOST_NAMED)
    .map(({ name, type }) => `"${printable(name)}" is a ${type}`);
  const more = wrong.length - named.length;
  return [
    error(
      `Other software uses the prefix ${shellWord(prefix)}: ${named.join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}. Locks of such keys fail (503).`,
      'Choose another "keyPrefix", or delete these keys.',
    ),
  ];
}

/** Values that no lock of ours has: another library holds the key, or it is no lock at all. */
async function foreign(server: Server, names: readonly string[]): Promise<readonly Found[]> {
  const looked = await Promise.all(
    names.map(async (name) => ({
      name,
      value: valueOf(await server.ask('get', name)),
      left: await server.ask('pttl', name),
    })),
  );
  const endless = looked
    .filter(
      ({ value, left }) =>
        value !== '' &&
        !value.startsWith('holdfast:') &&
        left.status === 'answered' &&
        left.value === -1,
    )
    .map(({ name }) => name);
  if (endless.length === 0) return [];
  return [
    warning(
      `What Holdfast did not write, and what never ends, is at ${namedIn(endless)}: locks of ${endless.length === 1 ? 'this key' : 'these keys'} are never granted.`,
      'Find out who wrote it; delete it, or choose another "keyPrefix".',
    ),
  ];
}
