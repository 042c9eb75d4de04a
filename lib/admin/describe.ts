import { isUnresponsive, known } from '../engine/presence.js';
import type { Answer, CallFacts } from '../engine/messages.js';
import type { FoundHolder, FoundInstance, FoundKey, FoundPlace } from '../store/admin-store.js';
import {
  holdModeOf,
  isDetachedToken,
  isOwnerToken,
  leaseIdOf,
  makerIn,
  placesOf,
} from '../store/owner-token.js';
import type {
  CallOrigin,
  HolderInfo,
  InstanceInfo,
  LockDescription,
  LockMode,
  LockSummary,
  OnceInfo,
  PastHoldInfo,
  WaiterInfo,
} from './lock-admin.types.js';

/** What is known beside what the store says of the key. */
export interface Knowledge {
  readonly instances: readonly FoundInstance[];
  /** The answers of instances, by id. */
  readonly answers: ReadonlyMap<string, Answer>;
  /** Now. */
  readonly wallMs: number;
}

/** Whether it is held, waited for or marked. */
export const isInUse = ({ holders, line, once }: FoundKey): boolean =>
  holders.length > 0 || line.length > 0 || once !== undefined;

/** The instances that hold a key, or wait for it. */
export function concernedBy(
  { holders, line }: FoundKey,
  instances: readonly FoundInstance[],
): readonly FoundInstance[] {
  const concerned = [
    ...holders.map((holder) => makerOf(holder, instances)),
    ...line.map((place) => waiterOf(place, instances)),
  ];
  return instances.filter((each) => concerned.includes(each));
}

export const unresponsiveOf = (
  asked: readonly FoundInstance[],
  answers: ReadonlyMap<string, Answer>,
  wallMs: number,
): readonly InstanceInfo[] =>
  asked.filter(({ id }) => !answers.has(id)).map((each) => infoOf(each, wallMs));

/** One row of a list: what a description says in short. */
export function summarized(found: FoundKey, knowledge: Knowledge): LockSummary {
  // A list says of a line only how long it is.
  const { key, state, mode, holders, once } = described({ ...found, line: [] }, knowledge);
  const { instances } = knowledge;
  const [first] = holders;
  return {
    key,
    state,
    ...known({
      mode,
      instance: first?.instance,
      since: first?.since,
      isDetached: first?.isDetached,
      isLeader: first?.isLeader,
      remainingMs: first && Math.max(...holders.map(({ remainingMs }) => remainingMs)),
      inUse: mode?.startsWith('limit')
        ? holders.reduce((sum, { places = 1 }) => sum + places, 0)
        : undefined,
    }),
    holders: holders.length,
    leases: holders.map(({ leaseId, instance }) => ({
      leaseId,
      ...known({ instanceId: instance?.id }),
    })),
    isUnresponsive: holders.some(({ instance }) => instance?.isUnresponsive === true),
    waiting: found.line.length,
    waitingInstanceIds: found.line.flatMap((place) => waiterOf(place, instances)?.id ?? []),
    ...known({ once: once?.state }),
  };
}

export function described(
  found: FoundKey,
  knowledge: Knowledge,
): Omit<LockDescription, 'unresponsive' | 'history' | 'audit'> {
  const { key, holders, line, once, fencingToken, limit } = found;
  const [first] = holders;
  return {
    key,
    state: first === undefined ? 'free' : 'held',
    ...(first && { mode: readMode(first.token) }),
    ...known({ fencingToken, limit }),
    holders: holders.map((holder) => holderInfo(holder, knowledge)),
    line: waitersIn(line, knowledge),
    ...(once && {
      once: {
        state: once.state as OnceInfo['state'],
        attempts: once.attempts,
        ...(once.state !== 'done' && once.text ? { error: once.text } : {}),
        keptForMs: once.remainingMs,
      },
    }),
  };
}

export function infoOf(found: FoundInstance, wallMs: number): InstanceInfo {
  const { id, application, host, pid, version, service, startedAtMs, seenMsAgo } = found;
  return {
    ...{ id, application, host, pid },
    ...known({ version, service }),
    startedAt: new Date(startedAtMs),
    seenAt: new Date(wallMs - seenMsAgo),
    isUnresponsive: isUnresponsive(found),
    isListening: found.address !== undefined,
  };
}

/** The last holders, as the instances remember them, the newest first. */
export const historyIn = ({ instances, answers, wallMs }: Knowledge): readonly PastHoldInfo[] =>
  instances
    .flatMap((instance) =>
      (answers.get(instance.id)?.past ?? []).map(
        ({ fencingToken, heldMs, endedMsAgo, outcome, reason, ...origin }) => ({
          ...{ instance: infoOf(instance, wallMs), fencingToken, outcome, ...originOf(origin) },
          ...{ from: new Date(wallMs - endedMsAgo - heldMs), to: new Date(wallMs - endedMsAgo) },
          ...known({ reason }),
        }),
      ),
    )
    .sort((a, b) => b.to.getTime() - a.to.getTime());

function holderInfo(holder: FoundHolder, { instances, answers, wallMs }: Knowledge): HolderInfo {
  const { token, remainingMs } = holder;
  const maker = makerOf(holder, instances);
  const leaseId = leaseIdOf(token);
  const isIt = (held: { readonly leaseId: string }): boolean => held.leaseId === leaseId;
  const hold = answers.get(maker?.id ?? '')?.holds?.find(isIt);
  // What a frozen or dead one said of it before.
  const recorded = hold ?? maker?.holds?.find(isIt);
  return {
    leaseId,
    ...known({
      instance: instanceOf(maker, wallMs),
      since: dateOf(
        hold === undefined ? (sinceOf(holder) ?? recorded?.sinceMs) : wallMs - hold.heldMs,
      ),
      fencingToken: hold?.fencingToken,
      isLeader: recorded?.isLeading,
    }),
    isForeign: !isOwnerToken(token),
    ...(isDetachedToken(token) && { isDetached: true }),
    ...severalOf(token),
    remainingMs,
    ...(recorded && originOf(recorded)),
    isUnresponsive: maker !== undefined && !answers.has(maker.id),
  };
}

/** A process may have several places at a key, for callers that want different things: what it says of them stands at the first. */
function waitersIn(
  line: readonly FoundPlace[],
  { instances, answers, wallMs }: Knowledge,
): readonly WaiterInfo[] {
  const named = new Set<string>();
  return line.map((place, index) => {
    const found = waiterOf(place, instances);
    const waits = found && !named.has(found.id) ? answers.get(found.id)?.waits : undefined;
    if (found !== undefined) named.add(found.id);
    const callers = waits?.map((wait) => ({
      ...originOf(wait),
      since: new Date(wallMs - wait.waitedMs),
    }));
    return {
      position: index + 1,
      ...severalOf(place.token),
      ...known({
        instance: instanceOf(found, wallMs),
        since: dateOf(place.sinceMs),
        keys: waits?.find(({ keys }) => keys.length > 1)?.keys,
        callers,
      }),
      isUnresponsive: found !== undefined && !answers.has(found.id),
    };
  });
}

const makerOf = (
  { token }: FoundHolder,
  instances: readonly FoundInstance[],
): FoundInstance | undefined => {
  const maker = makerIn(token);
  return instances.find(({ id }) => id === maker);
};

/** Over several masters a place names no token: the channel tells whose it is. */
const waiterOf = (
  { token, channel }: FoundPlace,
  instances: readonly FoundInstance[],
): FoundInstance | undefined => {
  const maker = makerIn(token);
  return instances.find(
    ({ id, address }) =>
      id === maker || (channel !== '' && address?.includes(JSON.stringify(`plain ${channel}`))),
  );
};

const instanceOf = (found: FoundInstance | undefined, wallMs: number): InstanceInfo | undefined =>
  found && infoOf(found, wallMs);

/** The places of a token that takes several. */
const severalOf = (token: string): { readonly places?: number } => {
  const places = placesOf(token);
  return places === 1 ? {} : { places };
};

const MODE = /^(exclusive|shared|limit:[1-9]\d{0,15})$/;

/** Other software may hold a key with a token that looks like ours. */
function readMode(token: string): LockMode {
  const mode = holdModeOf(token);
  return MODE.test(mode) ? mode : 'exclusive';
}

/**
 * Since when a holder has the key, which the last fencing token shows. A lock of other software has none: the last one
 * is that of an earlier holder.
 */
const sinceOf = ({ token, sinceMs }: FoundHolder): number | undefined =>
  isOwnerToken(token) ? sinceMs : undefined;

const dateOf = (ms: number | undefined): Date | undefined =>
  ms === undefined ? undefined : new Date(ms);

const originOf = ({ method, template, place }: CallFacts): CallOrigin =>
  known({ method, template, place });
