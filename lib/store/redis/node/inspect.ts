import type { Unavailable } from '../../lock-store.js';
import { MARK } from '../../owner-token.js';
import type { Server } from './server.js';

/** Whose key it is, as one node sees it. */
export type InspectVote =
  | { readonly status: 'free' }
  | { readonly status: 'held'; readonly holder: string; readonly remainingMs: number }
  | Unavailable;

/** How the marker begins that stands for all who hold a key together. */
const TOGETHER = `${MARK}:`;

/** Who holds a key at one node. */
export async function inspectAt(server: Server, key: string): Promise<InspectVote> {
  const { connection, options } = server;
  const { main, holders } = server.names(key);
  const reply = await connection.ask(
    options.nodeTimeoutMs,
    ({ client }) =>
      // A value that is no text is no lock, but it blocks one.
      Promise.all([
        client.command('pttl', main),
        client.command('get', main).catch(() => 'no lock'),
        client.command('pttl', holders),
      ]),
    'waits',
  );
  if (reply.status === 'unavailable') return reply;
  const [pttl, holder, together] = reply.value as readonly unknown[];
  if (typeof pttl !== 'number' || (holder !== null && typeof holder !== 'string'))
    return connection.malformed(reply.value);
  // Callers that hold the key together are one holder when votes are counted. Their marker may have been deleted.
  if (Number(together) > 0 && (holder === null || holder.startsWith(TOGETHER)))
    return { status: 'held', holder: TOGETHER, remainingMs: Number(together) };
  if (pttl === -2 || holder === null) return { status: 'free' };
  return { status: 'held', holder, remainingMs: pttl < 0 ? Infinity : pttl };
}
