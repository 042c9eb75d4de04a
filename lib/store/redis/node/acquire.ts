import { briefMs } from '../../claim.js';
import type { AcquireRequest, LeaseRequest, Unavailable } from '../../lock-store.js';
import { holdModeOf } from '../../owner-token.js';
import { acquireScript, type Vote } from '../scripts/acquire.js';
import { hashTagOf } from '../scripts/key-names.js';
import { take } from '../scripts/plain.js';
import type { Quarantined } from '../scripts/quarantine.js';
import { raiseFenceScript } from '../scripts/raise-fence.js';
import { releaseInSlot } from './release.js';
import type { KeysOfSlot, Server } from './server.js';

type Granted = Vote & { readonly status: 'granted' };

export interface AskedLock extends AcquireRequest {
  /** Over several masters: the fencing token that all of them are to grant. */
  readonly proposal?: number | undefined;
}

/** Takes locks at one node; on a Cluster, slot by slot. */
export function acquireAt(server: Server, request: AskedLock): Promise<Vote> {
  const { token } = request;
  const { opening } = server.looks;
  const asking =
    opening === undefined
      ? acquire(server, request)
      : opening.catch(() => undefined).then(() => acquire(server, request));
  const done = asking.then((vote) => {
    server.acquiring.delete(token);
    return vote;
  });
  server.acquiring.set(token, { done, isGivenUp: false });
  return done;
}

/** Takes a key by the plain script if that can be. Otherwise, or if that script does not, by the whole one. */
function acquire(server: Server, request: AskedLock): Promise<Vote> {
  const { keys, token, ttlMs, line, proposal = 0 } = request;
  const [key, another] = keys;
  if (key === undefined || another !== undefined || !mayBePlain(server, request))
    return acquireInLine(server, request);
  return server.share(take, { key, token, ttlMs, proposal }, ttlMs).then((answer) => {
    // A caller that is refused is to stand in line.
    const isWhole = answer === undefined || (answer.status === 'held' && line !== undefined);
    if (!isWhole) return judged(server, keys, answer);
    // The release was sent already: a lock that is asked for now would stay behind.
    if (server.acquiring.get(token)?.isGivenUp === true)
      return server.connection.failure('refused', 'was released before it was granted');
    return acquireInLine(server, request);
  });
}

/**
 * A caller that was refused before asks the whole script. So does every caller where a server may have forgotten what it granted. Over
 * several masters, so does every caller that names a place (`LeaseStore.isPlainFirst`).
 */
const mayBePlain = (
  { lineMode, options: { restartGuard, replicas } }: Server,
  { token, line }: AcquireRequest,
): boolean =>
  (lineMode === 'quorum' ? line === undefined : line?.ticket === undefined) &&
  restartGuard === undefined &&
  replicas === undefined &&
  holdModeOf(token) === 'exclusive';

/** Stands in line only where it is sure to be called: refused in another slot, it listens there, and asks again. */
async function acquireInLine(server: Server, request: AskedLock): Promise<Vote> {
  const { inbox } = server;
  const slots = server.bySlot(request.keys);
  const isUnheard = ([key]: KeysOfSlot): boolean => inbox.channelAt(server.slot(key)) === undefined;
  const unheard = request.line === undefined ? [] : slots.filter(isUnheard);
  const isOneSlot = slots.length === 1;
  const vote = await (isOneSlot
    ? acquireInSlot(server, request)
    : acquireInSlots(server, slots, request));
  if (vote.status !== 'held' || !unheard.some((keys) => keys.includes(vote.key))) return vote;
  await inbox.listenAt(server.slot(vote.key), hashTagOf(server.names(vote.key)));
  // The caller asks for the busy one of several slots first.
  return isOneSlot ? acquireInLine(server, request) : { ...vote, checkAgainMs: 0 };
}

/** Takes keys of one slot by the whole script. */
export function acquireInSlot(server: Server, request: AskedLock): Promise<Vote> {
  const { keys, token, ttlMs, line, joins, keeps, proposal = 0 } = request;
  const member = server.member(request, line);
  const call = { keys, token, ttlMs, member, ticket: line?.ticket, proposal, joins, keeps };
  return server.ask(acquireScript, call).then((answer) => {
    if (answer.status === 'granted') server.watch.granted();
    return judged(
      server,
      keys,
      answer.status === 'quarantined' ? inQuarantine(server, answer) : answer,
    );
  });
}

function judged(server: Server, [key = '']: readonly string[], vote: Vote): Vote {
  if (vote.status === 'unavailable') server.doubtfulSlots.add(server.slot(key));
  else if (server.doubtfulSlots.size > 0) server.doubtfulSlots.delete(server.slot(key));
  return vote;
}

/** What a server in quarantine answers to a request for a lock. */
export function inQuarantine({ watch, connection }: Server, { leftMs }: Quarantined): Unavailable {
  watch.quarantined(leftMs);
  return connection.failure(
    'refused',
    `may have forgotten leases, and grants none for another ${String(leftMs)} ms ("restartGuard")`,
  );
}

/** What was granted in one slot. */
interface InSlot {
  readonly keys: KeysOfSlot;
  readonly vote: Granted;
}

/**
 * Keys of several slots: one slot after the other. Refused at the first key, nothing has changed. Refused at a later
 * one, the caller keeps at most the keys before that one.
 */
async function acquireInSlots(
  server: Server,
  slots: readonly KeysOfSlot[],
  request: AskedLock,
): Promise<Vote> {
  const granted: InSlot[] = [];
  // The ticket is of the line of the first key.
  const { line } = request;
  const first = { ...request, keeps: undefined };
  const later = { ...first, line: line && { ...line, ticket: undefined } };
  const brieflyMs = Math.min(request.ttlMs, briefMs(slots.length));
  const isDoubtful = ([key]: KeysOfSlot): number =>
    Number(server.doubtfulSlots.has(server.slot(key)));
  const inOrder = slots.toSorted((one, other) => isDoubtful(other) - isDoubtful(one));
  for (const keys of inOrder) {
    const ttlMs = keys === inOrder.at(-1) ? request.ttlMs : brieflyMs;
    const asked = keys === slots[0] ? first : later;
    const vote = await acquireInSlot(server, { ...asked, keys, ttlMs });
    if (vote.status !== 'granted') {
      const isUnchanged = vote.status === 'unavailable' || vote.key === request.keys[0];
      if (granted.length === 0 && isUnchanged) return vote;
      const [had, kept] = toGiveBack(vote, request, granted);
      const failure = await giveBack(server, had, request, granted);
      if (failure !== undefined || vote.status !== 'held') return afterGrant(failure ?? vote);
      return { ...vote, kept };
    }
    granted.push({ keys, vote });
  }
  const fencingToken = Math.max(...granted.map(({ vote }) => vote.fencingToken));
  // All but the last are held briefly until now.
  const unfinished = granted.filter(
    ({ keys, vote }) => keys !== inOrder.at(-1) || vote.fencingToken < fencingToken,
  );
  const failure = await raiseFences(
    server,
    unfinished.flatMap(({ keys }) => keys),
    request,
    fencingToken,
  );
  if (failure === undefined) {
    const othersWait = granted.some(({ vote }) => vote.othersWait);
    return { status: 'granted', fencingToken, othersWait };
  }
  await giveBack(server, request.keys, request, granted);
  return afterGrant(failure);
}

/**
 * After a refusal at a later key than the first: what the caller releases, and whether it keeps the keys before the
 * busy one. If it kept none, callers could hand keys to each other in a circle. One that does not wait held nothing
 * before. After an outage the caller removes whatever it may have.
 */
function toGiveBack(
  vote: Exclude<Vote, { readonly status: 'granted' }>,
  { keys, keeps, line }: AcquireRequest,
  granted: readonly InSlot[],
): readonly [keys: readonly string[], kept: boolean] {
  const had = granted.flatMap((each) => each.keys);
  if (vote.status !== 'held') return [had, false];
  const { key: busy, ticket, heldForMs = 0 } = vote;
  const kept = keeps !== undefined && ticket !== undefined && heldForMs < keeps.limitMs;
  const mayHave = (key: string): boolean => line !== undefined || had.includes(key);
  return [keys.filter((key) => key !== busy && !(kept && key < busy) && mayHave(key)), kept];
}

/** Also what it held before. Keys that could not be released are an outage: callers clean up after an outage, and not after a refusal. */
async function giveBack(
  server: Server,
  keys: readonly string[],
  { token }: AcquireRequest,
  granted: readonly InSlot[],
): Promise<Unavailable | undefined> {
  const released = await Promise.all(
    server.bySlot(keys).map((some) => {
      const vote = granted.find((each) => each.keys.includes(some[0]))?.vote;
      return releaseInSlot(server, { keys: some, token }, { lastToken: vote?.fencingToken });
    }),
  );
  return released.find((outcome) => outcome.status === 'unavailable');
}

/** Raises the fences of a lease that this node granted with another token. Answers why not, where it could not. */
export async function raiseFences(
  server: Server,
  keys: readonly string[],
  { token, ttlMs }: LeaseRequest,
  fencingToken: number,
): Promise<Unavailable | undefined> {
  const raised = await Promise.all(
    server
      .bySlot(keys)
      .map((some) => server.ask(raiseFenceScript, { keys: some, token, ttlMs, fencingToken })),
  );
  const failure = raised.find((outcome) => outcome.status !== 'raised');
  if (failure?.status !== 'lost') return failure;
  return server.connection.failure('error', 'lost while the others were asked');
}

/** This request may never have left the process, but one before it did. */
export function afterGrant<Outcome extends object>(outcome: Outcome): Outcome {
  const { sent: _, ...rest } = outcome as Outcome & Partial<Unavailable>;
  return rest as Outcome;
}
