import calculateSlot from 'cluster-key-slot';
import type { WriteOutcome, WriteRequest } from '../../lock-store.js';
import { keysIn } from '../client/command-keys.js';
import { guardedScript } from '../scripts/guarded.js';
import { hashTagOf } from '../scripts/key-names.js';
import type { Server } from './server.js';

/** Runs commands of the application at one node, as long as a lease holds its keys there. */
export async function writeAt(server: Server, request: WriteRequest): Promise<WriteOutcome> {
  const dataKeys = [...new Set(request.commands.flatMap(keysIn))];
  const problem = problemWith(server, request.keys, dataKeys);
  if (problem !== undefined) return { status: 'refused', problem };
  return server.ask(guardedScript, { ...request, key: request.keys[0] ?? '', dataKeys });
}

function problemWith(
  server: Server,
  keys: readonly string[],
  dataKeys: readonly string[],
): string | undefined {
  if (new Set(keys.map((key) => server.slot(key))).size > 1)
    return (
      'The keys of the lock lie in several slots of the Cluster, and no step can check all of them. Give "keyPrefix" a hash tag, such as ' +
      "'{app}:', or lock one key."
    );
  const names = keys.map(server.names);
  const ours = new Set(names.flatMap((each) => Object.values(each) as string[]));
  const own = dataKeys.find((key) => ours.has(key));
  if (own !== undefined) return `"${own}" is a key of the lock itself. Use another name for data.`;
  const [first] = names;
  if (server.connection.client.kind === 'single' || first === undefined) return undefined;
  const slot = calculateSlot(first.main);
  const elsewhere = dataKeys.find((key) => calculateSlot(key) !== slot);
  if (elsewhere === undefined) return undefined;
  return (
    `"${elsewhere}" does not lie in the slot of the lock, and on a Cluster one step cannot see both. Put the hash tag of the lock into its ` +
    `name: "{${hashTagOf(first)}}:…".`
  );
}
