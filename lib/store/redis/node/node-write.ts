import calculateSlot from 'cluster-key-slot';
import type { WriteOutcome, WriteRequest } from '../../lock-store.js';
import { keysIn } from '../client/command-keys.js';
import { guardedScript } from '../scripts/guarded.js';
import { hashTagOf, type KeyNames } from '../scripts/key-names.js';
import type { NodeScripts } from './node-scripts.js';

/** Runs commands of the application at one node, as long as a lease holds its keys there. */
export async function writeAt(
  scripts: NodeScripts,
  { keys, token, ttlMs, commands }: WriteRequest,
): Promise<WriteOutcome> {
  const { connection, slots } = scripts.parts;
  const [group, another] = slots.groups(keys);
  const dataKeys = [...new Set(commands.flatMap(keysIn))];
  if (group === undefined || another !== undefined)
    return {
      status: 'refused',
      problem:
        'The keys of the lock lie in several slots of the Cluster, and no step can check all of them. Give "keyPrefix" a hash tag, such as ' +
        "'{app}:', or lock one key.",
    };
  const problem = problemWith(dataKeys, group.names, connection.client.kind);
  if (problem !== undefined) return { status: 'refused', problem };
  const call = guardedScript.encode({ names: group.names, token, dataKeys, commands });
  const timeLimitMs = scripts.timeLimitMs(ttlMs);
  const reply = await scripts.write(group.slot, { script: guardedScript, call, timeLimitMs });
  scripts.doubtAfter(reply);
  if (reply.status === 'unavailable') return reply;
  const answer = guardedScript.decode(reply.value);
  if (answer.status === 'malformed') return connection.malformed(answer);
  return answer.status === 'written' ? (reply.shortfall ?? answer) : answer;
}

function problemWith(
  dataKeys: readonly string[],
  names: readonly KeyNames[],
  kind: 'single' | 'cluster',
): string | undefined {
  const ours = new Set(names.flatMap((each) => Object.values(each) as string[]));
  const own = dataKeys.find((key) => ours.has(key));
  if (own !== undefined) return `"${own}" is a key of the lock itself. Use another name for data.`;
  if (kind === 'single') return undefined;
  const [first] = names;
  const slot = first && calculateSlot(first.main);
  const elsewhere = dataKeys.find((key) => calculateSlot(key) !== slot);
  if (elsewhere === undefined || first === undefined) return undefined;
  const tag = hashTagOf(first);
  return (
    `"${elsewhere}" does not lie in the slot of the lock, and on a Cluster one step cannot see both. Put the hash tag of the lock into its ` +
    `name: "{${tag}}:…".`
  );
}
