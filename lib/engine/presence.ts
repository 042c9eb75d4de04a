import { RecentMap } from '../collections/recent-map.js';
import { LockStoreUnavailableError, type NodeFailure } from '../errors.js';
import { redact } from '../errors/redact.js';
import type { Lease } from '../lease/lease.js';
import { callFacts } from '../lease/lock-request.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { Log } from '../observe/log.js';
import type { Caller } from '../queue/caller.js';
import type { LockQueue } from '../queue/lock-queue.js';
import { anyOf, pause } from '../queue/on-abort.js';
import type { LeaderInfo } from '../leader/lead.js';
import type { AdminStore, FoundHolder, FoundInstance, RecordedHold } from '../store/admin-store.js';
import { leaseIdOf, makerIn } from '../store/owner-token.js';
import { elapsedMs, type CancelTimer, type Instant } from '../time/clock.js';
import type { Scheduler, Task } from '../time/scheduler.js';
import type { Machine } from './machine.js';
import { parseMessage, type Answer, type Message, type Question } from './messages.js';

const REPORT_MS = 5_000;

/** A record outlives its instance for so long, or for two TTLs where that is longer. */
const LIFE_MS = 3_600_000;

/** An instance that has missed three reports. */
const UNRESPONSIVE_AFTER_MS = 3 * REPORT_MS;

/** So long an answer is waited for. A lease that has to end is asked for again then. */
const ANSWER_MS = 250;

/** So long that one is waited for: one of the two may just have lost its connection for messages. */
const END_MS = 1_500;

/** At most this many of the callers that wait for one key are reported. */
const MOST_CALLERS = 100;

const MOST_HOT = 50;

/** At most this many of the earlier holds of a key are reported. */
const MOST_PAST = 20;

const MOST_ANSWERED = 100;

/**
 * A record names at most this many of the locks that the instance holds. A lock that is held for long may be held by a
 * process that will be frozen.
 */
const MOST_RECORDED = 20;

/**
 * The number of the protocol that the stores speak. It changes when the scripts or keys of one version do not fit those of another: then
 * both versions must not lock the same keys.
 */
export const PROTOCOL = 1;

/**
 * What Redis says of a right that is missing, for a command or in a script. With a text before it, it is about the connection,
 * and is logged there.
 */
const FORBIDDEN = /^NOPERM\b|ACL failure|can't run this command/;

/** Whether that is why a server failed. */
export const isForbidden = ({ message }: NodeFailure): boolean => FORBIDDEN.test(message);

interface Dependencies {
  readonly store: AdminStore;
  readonly keeper: LeaseKeeper;
  readonly queue: LockQueue;
  readonly scheduler: Scheduler;
  readonly log: Log;
  readonly ttlMs: number;
  readonly service: string | undefined;
  /** Without it, the service does not publish its identity. */
  readonly machine: Machine | undefined;
}

type Asked = Extract<Message, { readonly type: 'ask' }>;

/** A question that came, perhaps more than once. */
interface Answering {
  /** Where the answer goes. */
  reply: string;
  /** Missing while the work that is replaced has not ended. */
  answer?: Answer;
}

/** Whether an instance has not replied or reported for so long that it is frozen, cut off or dead. */
export const isOverdue = ({ seenMsAgo }: FoundInstance): boolean =>
  seenMsAgo > UNRESPONSIVE_AFTER_MS;

/** Whether an instance does not reply now, or is overdue. */
export const isUnresponsive = (found: FoundInstance): boolean =>
  found.isSilent === true || isOverdue(found);

/** So long the answers to a question are waited for. */
function longestMs(question: Question, instances: readonly FoundInstance[]): number {
  if (question.about !== 'end') return ANSWER_MS;
  const mayReconnect = instances.some((each) => !isOverdue(each));
  return (mayReconnect ? END_MS : ANSWER_MS) + (question.replaceWaitMs ?? 0);
}

/**
 * Publishes this service in the store, replies to questions of operators, and receives their interventions. It never
 * delays a lock: the record is written every 5 s, and a failed write is tried again then.
 */
export class Presence {
  readonly id: string;
  readonly #deps: Dependencies;
  readonly #startedAtMs: number;
  /** By the id of the question. */
  readonly #asked = new Map<string, (from: string, answer: Answer) => void>();
  /** The questions that were answered last, by id. */
  readonly #answered = new RecentMap<string, Answering>(MOST_ANSWERED);
  #cancelNext: CancelTimer | undefined;
  #isStarted = false;
  /** A shutdown may come before the store has answered for the first time. */
  #isClosed = false;
  /** The report that is on its way. */
  #reporting: Promise<void> | undefined;
  #hasReported = false;
  #stopListening: (() => void) | undefined;
  #announced: Promise<void> | undefined;
  #hasWarned = false;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    const { queue, scheduler } = dependencies;
    this.id = queue.requests.maker.replace('.', '');
    this.#startedAtMs = Math.round(scheduler.runtime.now().wallMs);
  }

  /** What operators know it by. */
  get name(): string {
    const { machine } = this.#deps;
    if (machine === undefined) return this.id;
    return nameOf(machine);
  }

  /** Resolves when others can send messages to this service, or a second attempt at that has failed. */
  async announced(): Promise<void> {
    await this.#announced;
    if (!this.#isStarted || this.#hasReported) return;
    this.#announced = this.#report();
    await this.#announced;
  }

  /** In the background. */
  start(): void {
    if (this.#deps.machine === undefined || this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    this.#announced = this.#report();
  }

  /** Resolves when the record is removed, or the store did not reply: the record then expires. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    this.#cancelNext?.();
    this.#stopListening?.();
    if (!this.#isStarted) return;
    this.#isStarted = false;
    // What is on its way arrives before this.
    if (this.#reporting !== undefined || this.#hasReported)
      await this.#deps.store.retract(this.id).catch(() => undefined);
  }

  /** Resolves when messages are received, or cannot be. */
  async #listen(): Promise<void> {
    const { store, queue } = this.#deps;
    this.#stopListening ??= store.listen((text) => {
      const message = parseMessage(text);
      if (message !== undefined) this.#hear(message);
    });
    await queue.listen();
  }

  /**
   * Asks instances and, about keys and leases, this service itself. Waits at most 250 ms for their replies, 1.5 s for the
   * end of a lease, and longer for the end of work that is replaced. The result is by instance id; those that did not reply
   * are missing.
   *
   * @param hasLeft aborts when the replies are not wanted any more: nothing is sent after it
   */
  async ask(
    instances: readonly FoundInstance[],
    question: Question,
    hasLeft: AbortSignal = new AbortController().signal,
  ): Promise<ReadonlyMap<string, Answer>> {
    const { store, scheduler } = this.#deps;
    const isLeft = (): boolean => hasLeft.aborted;
    if (isLeft()) return new Map();
    // This service may keep no record of itself.
    const answers = new Map([[this.id, await this.#answer(question)]]);
    const others = instances.filter((each) => each.id !== this.id && each.address !== undefined);
    if (others.length === 0) return answers;
    await this.#listen();
    if (isLeft()) return answers;
    const id = scheduler.runtime.uuid();
    const isEnd = question.about === 'end';
    const send = (): Promise<unknown> => {
      const reply = store.address() ?? '';
      const missing = others.filter((each) => !answers.has(each.id));
      return Promise.all(
        missing.map(({ id: to, address = '' }) =>
          this.#tell(address, { type: 'ask', id, to, reply, question }),
        ),
      );
    };
    const canHear = isEnd ? store.address() !== undefined : store.isHearing;
    // Replies cannot be received, but a lease may have to end. After a shutdown, no timer may start.
    if (!canHear || this.#isClosed) {
      if (isEnd) await send();
      return answers;
    }
    const replied = new AbortController();
    const over = anyOf([replied.signal, hasLeft]);
    let next: Task | undefined;
    const sendAgain = (): void => {
      next = scheduler.schedule(ANSWER_MS, () => {
        if (this.#isClosed || over.signal.aborted) return;
        void send();
        sendAgain();
      });
    };
    this.#asked.set(id, (from, answer) => {
      if (!others.some((each) => each.id === from)) return;
      answers.set(from, answer);
      if (others.every((each) => answers.has(each.id))) replied.abort();
    });
    const sent = send();
    if (isEnd) sendAgain();
    await Promise.all([sent, pause(scheduler, longestMs(question, others), over.signal)]);
    over.unlink();
    next?.cancel();
    this.#asked.delete(id);
    return answers;
  }

  /**
   * What instances were found to be, after they were asked: one that replies is alive, whatever its record says. While
   * memory is full, for instance, no record can be written.
   */
  afterAsking(
    instances: readonly FoundInstance[],
    answers: ReadonlyMap<string, Answer>,
  ): readonly FoundInstance[] {
    const { isHearing } = this.#deps.store;
    return instances.map((each) => {
      if (answers.has(each.id)) return { ...each, seenMsAgo: 0 };
      return isHearing && each.address !== undefined ? { ...each, isSilent: true } : each;
    });
  }

  /** What is known of a leader: from the record of its instance, and from its own reply. */
  async leaderOf(key: string, { token, remainingMs, sinceMs }: FoundHolder): Promise<LeaderInfo> {
    const id = makerIn(token);
    const instances = id === undefined ? [] : await this.#deps.store.instances();
    const instance = instances.find((each) => each.id === id);
    const answers = await this.ask(instance === undefined ? [] : [instance], { about: 'key', key });
    const { holds = [] } = answers.get(id ?? '') ?? {};
    const term = holds.find(({ leaseId }) => leaseId === leaseIdOf(token))?.fencingToken;
    const { application, host, pid, version } = instance ?? {};
    const since = sinceMs === undefined ? undefined : new Date(sinceMs);
    const facts = { id, application, host, pid, version, since, term };
    return { isSelf: id === this.id, ...known(facts), remainingMs };
  }

  /** Writes the record, and plans the next time. Only one report is on its way at a time. */
  #report(): Promise<void> {
    this.#reporting ??= this.#tryReport().finally(() => {
      this.#reporting = undefined;
      if (!this.#isStarted) return;
      const again = (): void => void this.#report();
      // A program that does nothing else any more may end.
      this.#cancelNext?.();
      this.#cancelNext = this.#deps.scheduler.runtime.setTimer(again, REPORT_MS, 'background');
    });
    return this.#reporting;
  }

  /** Listens only where the store has answered: one that is not there yet is nothing to warn of twice. */
  async #tryReport(): Promise<void> {
    const { store } = this.#deps;
    this.#countHour();
    try {
      const known = store.address();
      await this.#write();
      const isFirst = !this.#hasReported;
      this.#hasReported = true;
      await this.#listen();
      if (store.address() !== known) await this.#write();
      if (isFirst) await this.#warnOfOthers();
    } catch (error) {
      this.#warn(error);
    }
  }

  /** The callers, without candidates for a leadership: those wait for as long as the leader lives. */
  #waiting(): readonly Caller[] {
    return this.#deps.queue.waiting.filter(({ request }) => request.isCandidate !== true);
  }

  #countHour(): void {
    const { keeper, queue, scheduler } = this.#deps;
    const waiting = this.#waiting().length;
    queue.lastHour.saw(keeper.leases.length, waiting, scheduler.runtime.now());
  }

  async #write(): Promise<void> {
    const { store, keeper, service, ttlMs, log, scheduler, machine } = this.#deps;
    // The presence is retracted already.
    if (machine === undefined || !this.#isStarted) return;
    const [startedAtMs, address] = [this.#startedAtMs, store.address()];
    const now = scheduler.runtime.now();
    const holds = keeper.leases.slice(0, MOST_RECORDED).map((lease) => holdOf(lease, now));
    const facts = { service, protocol: PROTOCOL, startedAtMs, address, holds };
    const record = { id: this.id, ...machine, ...facts };
    await store.report(record, Math.max(LIFE_MS, 2 * ttlMs));
    if (this.#hasWarned) log.warn('Operators can see again who this instance is.');
    this.#hasWarned = false;
  }

  /** The later of two instances sees the other one. */
  async #warnOfOthers(): Promise<void> {
    const { store, log } = this.#deps;
    // A user without the rights of `LockAdmin` may not read the records. No lock needs that.
    const instances = await store.instances().catch(() => []);
    for (const { protocol, application, host, pid } of instances)
      if (protocol !== undefined && protocol !== PROTOCOL)
        log.warn(
          `${nameOf({ application, host, pid })} uses the same keys with another version of Holdfast: ` +
            `its protocol has the number ${String(protocol)}, and that of this version ${String(PROTOCOL)}. ` +
            'Two instances can then hold one lock. Stop all instances of one version before you start the other one.',
        );
  }

  /** An outage, a replica and memory that is full are logged where they are found out; what is forbidden is not, for no lock needs it. */
  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    const [why, remedy] = whyUnseen(error) ?? [];
    if (why === undefined || remedy === undefined) return;
    this.#hasWarned = true;
    this.#deps.log.warn(
      `Operators cannot see who this instance is: ${why}. ${remedy}, or give "instance: false". Locks are not affected.`,
    );
  }

  #hear(message: Message): void {
    if (message.type === 'answer') this.#asked.get(message.id)?.(message.from, message.answer);
    else if (message.to === this.id) void this.#reply(message);
  }

  async #reply({ id, reply, question }: Asked): Promise<void> {
    const send = (to: string, answer: Answer): Promise<void> =>
      this.#tell(to, { type: 'answer', id, from: this.id, answer });
    const before = this.#answered.get(id);
    // Each of several masters delivers it, and it comes again where the answer may be lost. A lease ends once.
    if (before !== undefined) {
      before.reply = reply;
      if (before.answer !== undefined) await send(reply, before.answer);
      return;
    }
    const answering: Answering = { reply };
    this.#answered.set(id, answering);
    const answer = await this.#answer(question);
    if (question.about === 'end') answering.answer = answer;
    await send(answering.reply, answer);
  }

  async #tell(address: string, message: Message): Promise<void> {
    // A message that was not delivered is no error: the instance that it was for counts as unresponsive.
    await this.#deps.store.tell(address, JSON.stringify(message)).catch(() => undefined);
  }

  async #answer(question: Question): Promise<Answer> {
    const { keeper, queue, scheduler } = this.#deps;
    if (question.about === 'hot') {
      this.#countHour();
      const { contention, lastHour } = queue;
      const waiting = this.#waiting();
      const hot = contention.hottest(MOST_HOT, waiting);
      return { hot, minutes: lastHour.minutes, callers: waiting.length };
    }
    if (question.about === 'end') {
      const { leases, intervention, replaceWaitMs } = question;
      const endings = leases.map(async (each) =>
        keeper.endByForce(each, intervention, replaceWaitMs),
      );
      return { endings: await Promise.all(endings) };
    }
    const { key } = question;
    const now = scheduler.runtime.now();
    const holds = keeper.leases
      .filter((lease) => lease.keys.includes(key))
      .map((lease: Lease) => ({
        ...holdOf(lease, now),
        heldMs: lease.heldForMs(now),
        fencingToken: lease.fencingToken,
      }));
    const waits = queue.waitingFor(key).slice(0, MOST_CALLERS);
    return {
      holds,
      waits: waits.map(({ request, waitedMs }) => ({
        ...callFacts(request),
        waitedMs,
        keys: request.keys,
      })),
      past: keeper.past
        .of(key)
        .slice(0, MOST_PAST)
        .map(({ facts, fencingToken, heldMs, endedAt, outcome, reason }) => ({
          ...facts,
          ...{ fencingToken, heldMs, outcome, reason, endedMsAgo: elapsedMs(endedAt, now) },
        })),
    };
  }
}

const nameOf = ({
  application,
  pid,
  host,
}: Pick<Machine, 'application' | 'pid' | 'host'>): string =>
  `${application} (process ${String(pid)} on ${host})`;

/** What happened, and what to do; `undefined` of an outage. */
function whyUnseen(error: unknown): readonly [string, string] | undefined {
  if (!(error instanceof LockStoreUnavailableError))
    return [`the store failed (${redact(String(error))})`, 'Look at the "admin" of the store'];
  const forbidden = error.nodes.find(isForbidden);
  return (
    forbidden && [
      `${forbidden.node} refuses its record (${forbidden.message})`,
      'Allow SET, DEL, ZADD, ZREM, ZREMRANGEBYSCORE and PEXPIRE for the Redis user',
    ]
  );
}

const holdOf = (lease: Lease, now: Instant): RecordedHold => ({
  ...callFacts(lease.request),
  leaseId: leaseIdOf(lease.token),
  sinceMs: Math.round(now.wallMs - lease.heldForMs(now)),
  ...(lease.request.isCandidate && { isLeading: true }),
});

/** Without what is not known. */
export const known = <T extends object>(
  facts: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } =>
  Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as T;
