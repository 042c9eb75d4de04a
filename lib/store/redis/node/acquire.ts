import { briefMs } from '../../claim.js';
import type { AcquireRequest, LeaseRequest, Unavailable } from '../../lock-store.js';
import { holdModeOf } from '../../owner-token.js';
import { acquireScript, type Vote } from '../scripts/acquire.js';
import { hashTagOf } from '../scripts/key-names.js';
import { take } from '../scripts/plain.js';
import { raiseFenceScript } from '../scripts/raise-fence.js';
import { releaseGroup } from './release.js';
import type { Group, Server } from './server.js';

type Granted = Vote & { readonly status: 'granted' };

export interface AskedLock extends AcquireRequest {
  /** Over several masters: the fencing token that all of them are to grant. */
  readonly proposal?: number | undefined;
}

/** Takes locks at one node; on a Cluster, slot by slot. */
export function acquireAt(server: Server, request: AskedLock): Promise<Vote> {
  const { token } = request;
  const { opening } = server.looks;
  const ask = (): Promise<Vote> => acquire(server, request);
  const done = (opening === undefined ? ask() : opening.then(ask, ask)).then((vote) => {
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
  const since = server.now();
  return server.share(take, { key, token, ttlMs, proposal }, ttlMs).then((answer) => {
    // A caller that is refused is to stand in line.
    const isWhole = answer === undefined || (answer.status === 'held' && line !== undefined);
    if (!isWhole) return judged(server, server.slot(key), answer);
    // The release was sent already: a lock that is asked for now would stay behind.
    if (server.acquiring.get(token)?.isGivenUp === true)
      return server.connection.failure('refused', 'was released before it was granted');
    return acquireInLine(server, request, { since });
  });
}

/**
 * A caller that was refused before asks the whole script. So does every caller where a server may have forgotten what it granted. Over
 * several masters, a caller that is to stand in line does: its next request may be granted before a slow master is asked for the second
 * time. That master would then write the place down too late.
 */
const mayBePlain = (
  { lineMode, options: { restartGuard, replicas } }: Server,
  { token, line }: AcquireRequest,
): boolean =>
  (lineMode === 'quorum' ? line === undefined : line?.ticket === undefined) &&
  restartGuard === undefined &&
  replicas === undefined &&
  holdModeOf(token) === 'exclusive';

/** How the whole script is asked. */
interface GroupTerms {
  /** Default: that of the options. */
  readonly fenceKeepMs?: number;
  /** When the plain case was asked for. */
  readonly since?: number;
}

/** Stands in line only where it is sure to be called: refused in another slot, it listens there, and asks again. */
async function acquireInLine(
  server: Server,
  request: AskedLock,
  terms?: GroupTerms,
): Promise<Vote> {
  const { inbox } = server;
  const groups = server.groups(request.keys);
  const isUnheard = ({ slot }: Group): boolean => inbox.channelAt(slot) === undefined;
  const unheard = request.line === undefined ? [] : groups.filter(isUnheard);
  const [first, second] = groups;
  const vote = await (first !== undefined && second === undefined
    ? acquireGroup(server, first, request, terms)
    : acquireGroups(server, groups, request));
  if (vote.status !== 'held') return vote;
  const at = unheard.find(({ slot }) => slot === server.slot(vote.key));
  if (at === undefined) return vote;
  await inbox.listenAt(at.slot, hashTagOf(server.names(vote.key)));
  // The caller asks for the busy one of several slots first.
  return second === undefined ? acquireInLine(server, request) : { ...vote, checkAgainMs: 0 };
}

/** Takes keys of one slot by the whole script. */
export function acquireGroup(
  server: Server,
  group: Group,
  { token, ttlMs, line, joins, keeps, proposal = 0 }: AskedLock,
  { fenceKeepMs, since }: GroupTerms = {},
): Promise<Vote> {
  const { slot, keys } = group;
  const member = server.member({ keys, token }, line, slot);
  const ticket = line?.ticket;
  return server
    .ask(acquireScript, {
      ...{ keys, token, ttlMs, fenceKeepMs, member, ticket, proposal, joins, keeps, since },
    })
    .then((answer) =>
      judged(
        server,
        slot,
        answer.status === 'quarantined' ? inQuarantine(server, answer.leftMs) : answer,
      ),
    );
}

function judged(server: Server, slot: number, vote: Vote): Vote {
  if (vote.status === 'unavailable') server.doubtfulSlots.add(slot);
  else server.doubtfulSlots.delete(slot);
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

/**
 * Keys of several slots: one slot after the other. Refused at the first key, nothing has changed. Refused at a later
 * one, the caller keeps at most the keys before that one.
 */
async function acquireGroups(
  server: Server,
  groups: readonly Group[],
  request: AskedLock,
): Promise<Vote> {
  const granted: { readonly group: Group; readonly vote: Granted }[] = [];
  // The ticket is of the line of the first key.
  const { line } = request;
  const first = { ...request, keeps: undefined };
  const later = { ...first, line: line && { ...line, ticket: undefined } };
  const brieflyMs = Math.min(request.ttlMs, briefMs(groups.length));
  const isDoubtful = ({ slot }: Group): number => Number(server.doubtfulSlots.has(slot));
  const inOrder = groups.toSorted((one, other) => isDoubtful(other) - isDoubtful(one));
  for (const group of inOrder) {
    const isBrief = group !== inOrder.at(-1);
    const ttlMs = isBrief ? brieflyMs : request.ttlMs;
    const asked = { ...(group === groups[0] ? first : later), ttlMs };
    const vote = await acquireGroup(server, group, asked);
    if (vote.status !== 'granted') {
      const isUnchanged = vote.status === 'unavailable' || vote.key === request.keys[0];
      if (granted.length === 0 && isUnchanged) return vote;
      const [had, kept] = toGiveBack(server, vote, request, granted);
      const failure = await giveBack(server, had, request, granted);
      if (failure !== undefined || vote.status !== 'held') return afterGrant(failure ?? vote);
      return { ...vote, kept };
    }
    granted.push({ group, vote });
  }
  const fencingToken = Math.max(...granted.map(({ vote }) => vote.fencingToken));
  // All but the last are held briefly until now.
  const unfinished = granted.filter(
    ({ group, vote }) => group !== inOrder.at(-1) || vote.fencingToken < fencingToken,
  );
  const failure = await raiseFences(
    server,
    unfinished.map(({ group }) => group),
    request,
    fencingToken,
  );
  if (failure === undefined) {
    const othersWait = granted.some(({ vote }) => vote.othersWait);
    return { status: 'granted', fencingToken, othersWait };
  }
  await giveBack(server, groups, request, granted);
  return afterGrant(failure);
}

/**
 * After a refusal at a later key than the first: what the caller releases, and whether it keeps the keys before the
 * busy one. If it kept none, callers could hand keys to each other in a circle. One that does not wait held nothing
 * before. After an outage the caller removes whatever it may have.
 */
function toGiveBack(
  server: Server,
  vote: Exclude<Vote, { readonly status: 'granted' }>,
  { keys, keeps, line }: AcquireRequest,
  granted: readonly { readonly group: Group }[],
): readonly [readonly Group[], boolean] {
  if (vote.status !== 'held') return [granted.map(({ group }) => group), false];
  const { key: busy, ticket, heldForMs = 0 } = vote;
  const kept = keeps !== undefined && ticket !== undefined && heldForMs < keeps.limitMs;
  const had = new Set(granted.map(({ group }) => group.slot));
  const mayHave = (key: string): boolean => line !== undefined || had.has(server.slot(key));
  const given = keys.filter((key) => key !== busy && !(kept && key < busy) && mayHave(key));
  return [server.groups(given), kept];
}

/** Also what it held before. Keys that could not be released are an outage: callers clean up after an outage, and not after a refusal. */
async function giveBack(
  server: Server,
  groups: readonly Group[],
  request: AcquireRequest,
  granted: readonly { readonly group: Group; readonly vote: Granted }[],
): Promise<Unavailable | undefined> {
  const released = await Promise.all(
    groups.map((group) => {
      const vote = granted.find((other) => other.group.slot === group.slot)?.vote;
      return releaseGroup(server, group, request, { lastToken: vote?.fencingToken });
    }),
  );
  return released.find((outcome) => outcome.status === 'unavailable');
}

/** Raises the fences of a lease that this node granted with another token. Answers why not, where it could not. */
export async function raiseFences(
  server: Server,
  groups: readonly Group[],
  { token, ttlMs }: LeaseRequest,
  fencingToken: number,
): Promise<Unavailable | undefined> {
  const raised = await Promise.all(
    groups.map(({ keys }) => server.ask(raiseFenceScript, { keys, token, ttlMs, fencingToken })),
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
