import { briefMs } from '../../claim.js';
import { isOwnerToken, turnsOf } from '../../owner-token.js';
import type { AcquireRequest, BriefHold, LeaseRequest, Unavailable } from '../../lock-store.js';
import { acquireScript } from '../scripts/acquire.js';
import { raiseFenceScript } from '../scripts/raise-fence.js';
import type { AcknowledgedReply } from './acknowledged-writes.js';
import type { Group } from './key-groups.js';
import { hashTagOf } from '../scripts/key-names.js';
import type { Vote } from './node-answers.js';
import type { NodeRelease } from './node-release.js';
import type { NodeScripts } from './node-scripts.js';

/**
 * No message notifies us of the release: the holder is software that does not know inboxes, or our place in line was
 * refused.
 */
const UNTOLD_CHECK_MS = 1_000;

type Granted = Vote & { readonly status: 'granted' };

/** What one script is asked for. */
interface GroupRequest {
  readonly group: Group;
  readonly request: AcquireRequest;
  readonly proposal: number;
  /** Default: that of the options. */
  readonly fenceKeepMs?: number;
  /** Other slots are asked yet: no turns are taken under it. */
  readonly isBrief?: boolean;
}

/** What is remembered of a request until it is answered. */
interface SentGroup {
  readonly group: Group;
  readonly member: string;
  /** When it was sent, where the server's clock counts. */
  readonly sentAt: number | undefined;
  readonly keeps: BriefHold | undefined;
}

/** Takes locks at one node; on a Cluster, slot by slot. */
export class NodeAcquire {
  readonly #scripts: NodeScripts;
  readonly #release: NodeRelease;
  /** The last request at these slots was an outage. They are asked first, so that no other key is held while they do not reply. */
  readonly #doubtfulSlots = new Set<number>();

  constructor(scripts: NodeScripts, release: NodeRelease) {
    this.#scripts = scripts;
    this.#release = release;
  }

  /** Stands in line only where it is sure to be called: refused in another slot, it listens there, and asks again. */
  async acquire(request: AcquireRequest, proposal: number): Promise<Vote> {
    const { slots, inbox } = this.#scripts.parts;
    const groups = slots.groups(request.keys);
    const isUnheard = ({ slot }: Group): boolean => inbox.channelAt(slot) === undefined;
    const unheard = request.line === undefined ? [] : groups.filter(isUnheard);
    const [first, second] = groups;
    const vote = await (first !== undefined && second === undefined
      ? this.acquireGroup({ group: first, request, proposal })
      : this.#acquireGroups(groups, request, proposal));
    if (vote.status !== 'refused') return vote;
    const at = unheard.find(({ slot }) => slot === slots.slot(vote.key));
    if (at === undefined) return vote;
    await inbox.listenAt(at.slot, hashTagOf(at.names[0]));
    // The caller asks for the busy one of several slots first.
    return second === undefined ? this.acquire(request, proposal) : { ...vote, checkAgainMs: 0 };
  }

  /** Raises the fences of a lease that this node granted with another token. Answers why not, where it could not. */
  async raiseFence(lease: LeaseRequest, fencingToken: number): Promise<Unavailable | undefined> {
    const groups = this.#scripts.parts.slots.groups(lease.keys);
    const outcomes = await Promise.all(
      groups.map((group) => this.#raiseFence(group, lease, fencingToken)),
    );
    return outcomes.find((outcome) => outcome !== undefined);
  }

  acquireGroup(asked: GroupRequest): Promise<Vote> {
    const { group, request, proposal, isBrief = false } = asked;
    const scripts = this.#scripts;
    const { options, lineMode } = scripts.parts;
    const { fenceKeepMs = options.fenceKeepMs } = asked;
    const member = scripts.member(request, request.line, group);
    const call = acquireScript.encode({
      names: group.names,
      epoch: scripts.guardedBy,
      token: request.token,
      ttlMs: request.ttlMs,
      fenceKeepMs,
      turns: isBrief ? 1 : turnsOf(request.token, options.turns),
      lineMode,
      member,
      ticket: request.line?.ticket,
      proposal,
      maxTtlMs: options.restartGuard?.maxTtlMs,
      joins: request.joins,
      keeps: request.keeps,
    });
    const sentAt = scripts.sentAt();
    const timeLimitMs = scripts.timeLimitMs(request.ttlMs);
    return scripts.write(group.slot, { script: acquireScript, call, timeLimitMs }).then((reply) => {
      if (reply.status === 'unavailable') this.#doubtfulSlots.add(group.slot);
      else this.#doubtfulSlots.delete(group.slot);
      return this.#voteOf(reply, { group, member, sentAt, keeps: request.keeps });
    });
  }

  #voteOf(reply: AcknowledgedReply, { group, member, sentAt, keeps }: SentGroup): Vote {
    const scripts = this.#scripts;
    const { connection, watch, lineMode, prefix } = scripts.parts;
    scripts.doubtAfter(reply);
    if (reply.status === 'unavailable') return reply;
    const answer = acquireScript.decode(reply.value);
    if (answer.status === 'malformed') return connection.malformed(answer);
    scripts.learn(answer.clockUs, sentAt);
    if (answer.status === 'granted') {
      watch.granted();
      const { fencingToken, othersWait, otherLimit } = answer;
      return reply.shortfall ?? { status: 'granted', fencingToken, othersWait, otherLimit };
    }
    if (answer.status === 'quarantined') return this.#inQuarantine(answer.leftUs);
    const { holder, remainingMs, ticket, otherLimit, fence, clockUs, kept } = answer;
    const busy = group.names[answer.position - 1];
    if (busy === undefined) return connection.malformed({ reply: reply.value });
    const willBeTold = isOwnerToken(holder) && (ticket !== undefined || member === '');
    return {
      status: 'refused',
      key: busy.main.slice(prefix.length),
      holder,
      remainingMs,
      checkAgainMs: willBeTold ? remainingMs : Math.min(UNTOLD_CHECK_MS, remainingMs),
      // No node of several decides who is next.
      ticket: lineMode === 'quorum' ? undefined : ticket,
      otherLimit,
      heldForMs: Math.max(0, clockUs - fence) / 1_000,
      kept: keeps === undefined ? undefined : kept,
    };
  }

  /**
   * Keys of several slots: one slot after the other. Refused at the first key, nothing has changed. Refused at a later
   * one, the caller keeps at most the keys before that one.
   */
  async #acquireGroups(
    groups: readonly Group[],
    request: AcquireRequest,
    proposal: number,
  ): Promise<Vote> {
    const granted: { readonly group: Group; readonly vote: Granted }[] = [];
    // The ticket is of the line of the first key.
    const { line } = request;
    const first = { ...request, keeps: undefined };
    const later = { ...first, line: line && { ...line, ticket: undefined } };
    const brieflyMs = Math.min(request.ttlMs, briefMs(groups.length));
    const isDoubtful = ({ slot }: Group): number => Number(this.#doubtfulSlots.has(slot));
    const inOrder = groups.toSorted((one, other) => isDoubtful(other) - isDoubtful(one));
    for (const group of inOrder) {
      const isLast = group === inOrder.at(-1);
      const ttlMs = isLast ? request.ttlMs : brieflyMs;
      const asked = { ...(group === groups[0] ? first : later), ttlMs };
      const vote = await this.acquireGroup({ group, request: asked, proposal, isBrief: !isLast });
      if (vote.status !== 'granted') {
        const isUnchanged = vote.status === 'unavailable' || vote.key === request.keys[0];
        if (granted.length === 0 && isUnchanged) return vote;
        const [had, kept] = this.#toGiveBack(vote, request, granted);
        const failure = await this.#giveBack(had, request, granted);
        if (failure !== undefined || vote.status !== 'refused') return afterGrant(failure ?? vote);
        return { ...vote, kept };
      }
      granted.push({ group, vote });
    }
    const fencingToken = Math.max(...granted.map(({ vote }) => vote.fencingToken));
    // All but the last are held briefly until now.
    const unfinished = granted.filter(
      ({ group, vote }) => group !== inOrder.at(-1) || vote.fencingToken < fencingToken,
    );
    const raised = await Promise.all(
      unfinished.map(({ group }) => this.#raiseFence(group, request, fencingToken)),
    );
    const failure = raised.find((outcome) => outcome !== undefined);
    if (failure === undefined) {
      const othersWait = granted.some(({ vote }) => vote.othersWait);
      return { status: 'granted', fencingToken, othersWait };
    }
    await this.#giveBack(groups, request, granted);
    return afterGrant(failure);
  }

  /**
   * After a refusal at a later key than the first: what the caller releases, and whether it keeps the keys before the
   * busy one. If it kept none, callers could hand keys to each other in a circle. One that does not wait held nothing
   * before. After an outage the caller removes whatever it may have.
   */
  #toGiveBack(
    vote: Exclude<Vote, { readonly status: 'granted' }>,
    { keys, keeps, line }: AcquireRequest,
    granted: readonly { readonly group: Group }[],
  ): readonly [readonly Group[], boolean] {
    if (vote.status !== 'refused') return [granted.map(({ group }) => group), false];
    const { key: busy, ticket, heldForMs = 0 } = vote;
    const kept = keeps !== undefined && ticket !== undefined && heldForMs < keeps.limitMs;
    const { slots } = this.#scripts.parts;
    const had = new Set(granted.map(({ group }) => group.slot));
    const mayHave = (key: string): boolean => line !== undefined || had.has(slots.slot(key));
    const given = keys.filter((key) => key !== busy && !(kept && key < busy) && mayHave(key));
    return [slots.groups(given), kept];
  }

  /** Also what it held before. Keys that could not be released are an outage: callers clean up after an outage, and not after a refusal. */
  async #giveBack(
    groups: readonly Group[],
    request: AcquireRequest,
    granted: readonly { readonly group: Group; readonly vote: Granted }[],
  ): Promise<Unavailable | undefined> {
    const released = await Promise.all(
      groups.map((group) => {
        const vote = granted.find((other) => other.group.slot === group.slot)?.vote;
        return this.#release.releaseGroup(group, request, { lastToken: vote?.fencingToken });
      }),
    );
    return released.find((outcome) => outcome.status === 'unavailable');
  }

  async #raiseFence(
    { slot, names }: Group,
    lease: LeaseRequest,
    fencingToken: number,
  ): Promise<Unavailable | undefined> {
    const scripts = this.#scripts;
    const { connection, options } = scripts.parts;
    const call = raiseFenceScript.encode({
      names,
      token: lease.token,
      // All that are reserved: the next grant has to be larger than the last of them.
      fencingToken: fencingToken + turnsOf(lease.token, options.turns) - 1,
      ttlMs: lease.ttlMs,
      fenceKeepMs: options.fenceKeepMs,
      lineMode: scripts.parts.lineMode,
    });
    const timeLimitMs = scripts.timeLimitMs(lease.ttlMs);
    const reply = await scripts.write(slot, { script: raiseFenceScript, call, timeLimitMs });
    if (reply.status === 'unavailable') return reply;
    const answer = raiseFenceScript.decode(reply.value);
    if (answer.status === 'malformed') return connection.malformed(answer);
    if (answer.raised === names.length) return reply.shortfall;
    return connection.failure('error', 'lost while the others were asked');
  }

  #inQuarantine(us: number): Unavailable {
    const { watch, connection } = this.#scripts.parts;
    const leftMs = Math.ceil(us / 1_000);
    watch.quarantined(leftMs);
    return connection.failure(
      'refused',
      `may have forgotten leases, and grants none for another ${String(leftMs)} ms ("restartGuard")`,
    );
  }
}

/** This request may never have left the process, but one before it did. */
function afterGrant<Outcome extends Vote>(outcome: Outcome): Outcome {
  const { sent: _, ...rest } = outcome as Outcome & Partial<Unavailable>;
  return rest as Outcome;
}
