import type {
  AcquireOutcome,
  AcquireRequest,
  SeveralLeases,
  Unavailable,
} from '../../lock-store.js';
import { holdModeOf } from '../../owner-token.js';
import { acquireScript, type Vote } from '../scripts/acquire.js';
import { hashTagOf } from '../scripts/key-names.js';
import { take, takeTogether } from '../scripts/plain.js';
import type { Server } from './server.js';

/** Takes a lock at one node. */
export function acquireAt(
  server: Server,
  request: AcquireRequest,
  proposal: number,
): Promise<Vote> {
  const { token } = request;
  const { opening } = server.looks;
  const ask = (): Promise<Vote> => acquire(server, request, proposal);
  const acquiring = (opening === undefined ? ask() : opening.then(ask, ask)).then((vote) => {
    server.acquiring.delete(token);
    server.givenUp.delete(token);
    return vote;
  });
  server.acquiring.set(token, acquiring);
  return acquiring;
}

/** Takes a key by the plain script if that can be. Otherwise, or if that script does not, by the whole one. */
function acquire(server: Server, request: AcquireRequest, proposal: number): Promise<Vote> {
  const { key, token, ttlMs, line, isRefused = line?.ticket !== undefined } = request;
  if (isRefused || !mayBePlain(server, token)) return acquireInLine(server, request, { proposal });
  const since = server.now();
  return server.share(take, { key, token, ttlMs, proposal }, ttlMs).then((answer) => {
    // Who is refused is to stand in line.
    const isWhole = answer === undefined || (answer.status === 'held' && line !== undefined);
    if (!isWhole) return judged(server, answer);
    // The release was sent already: a lock that is asked for now would stay behind.
    if (server.givenUp.has(token))
      return server.connection.failure('refused', 'was released before it was granted');
    return acquireInLine(server, request, { proposal, since });
  });
}

/** Every caller asks the whole script where a server may have forgotten what it granted. */
const mayBePlain = ({ options: { restartGuard, replicas } }: Server, token: string): boolean =>
  restartGuard === undefined && replicas === undefined && holdModeOf(token) === 'exclusive';

/** How the whole script is asked. */
interface Terms {
  readonly proposal: number;
  /** Default: that of the options. */
  readonly fenceKeepMs?: number;
  /** When the plain case was asked for. */
  readonly since?: number;
}

/**
 * Stands in line only where it is sure to be called: refused in another slot, it listens there, and asks again. A caller
 * that holds other keys returns these first.
 */
async function acquireInLine(server: Server, request: AcquireRequest, terms: Terms): Promise<Vote> {
  const { inbox } = server;
  const slot = server.slot(request.key);
  const isHeard = request.line === undefined || inbox.channelAt(slot) !== undefined;
  const vote = await acquireWhole(server, request, terms);
  if (vote.status !== 'held' || isHeard) return vote;
  const listening = inbox.listenAt(slot, hashTagOf(server.names(request.key)));
  if (request.holdsOthers === true) return { ...vote, checkAgainMs: 0 };
  await listening;
  return acquireInLine(server, request, { proposal: terms.proposal });
}

/** Takes a key by the whole script. */
export function acquireWhole(
  server: Server,
  { key, token, ttlMs, line, joins }: AcquireRequest,
  { proposal, fenceKeepMs, since }: Terms,
): Promise<Vote> {
  const member = server.member({ key, token }, line);
  const ticket = line?.ticket;
  return server
    .ask(acquireScript, { key, token, ttlMs, fenceKeepMs, member, ticket, proposal, joins, since })
    .then((answer) =>
      judged(
        server,
        answer.status === 'quarantined' ? inQuarantine(server, answer.leftMs) : answer,
      ),
    );
}

function judged(server: Server, vote: Vote): Vote {
  if (vote.status === 'granted') server.watch.granted();
  return vote;
}

function inQuarantine({ watch, connection }: Server, leftMs: number): Unavailable {
  watch.quarantined(leftMs);
  return connection.failure(
    'refused',
    `may have forgotten leases, and grants none for another ${String(leftMs)} ms ("restartGuard")`,
  );
}

/** Takes several keys at one node in one step, if that is plain; `undefined`: one by one. */
export async function acquireTogetherAt(
  server: Server,
  leases: SeveralLeases,
): Promise<AcquireOutcome | undefined> {
  if (!server.isOneSlot || !mayBePlain(server, leases.token)) return undefined;
  await server.looks.opening?.catch(() => undefined);
  const [key = ''] = leases.keys;
  const outcome = await server.ask(takeTogether, { ...leases, key });
  if (outcome.status === 'granted') server.watch.granted();
  // An error may be that of one key.
  const isError =
    outcome.status === 'unavailable' && outcome.nodes.every(({ kind }) => kind === 'error');
  return outcome.status === 'not-plain' || isError ? undefined : outcome;
}
