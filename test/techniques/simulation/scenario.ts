/** What happens in a world, as plain data: a world is played from this and from its seed, and from nothing else. */
import type { ClockPlan } from './world/clock.js';
import type { Direction, LinkPlan } from './world/link.js';
import type { Standstill } from './world/sim-process.js';

export const PROFILES = [
  'line',
  'quorum',
  'modes',
  'once',
  'lead',
  'all',
  'replace',
  'operator',
  'cron',
  'login',
  'driver',
  'clients',
] as const;

export type ProfileName = (typeof PROFILES)[number];

export type How = 'acquire' | 'tryAcquire' | 'run' | 'tryRun' | 'once' | 'lead';

/** 'exclusive', 'shared' or 'limit:<n>'. */
export type Mode = string;

/** Has a lock go to another process when its work is done. */
export interface DetachPlan {
  /** Until it is attached. */
  readonly ttlMs: number;
  readonly to: number;
  /** On its way, each time that it is delivered. */
  readonly afterMs: readonly number[];
  /** By the process that attaches it. */
  readonly holdMs: number;
}

/** What a caller asks for, and what it does with it. */
export interface Operation {
  readonly how: How;
  /** Before it asks. */
  readonly pauseMs: number;
  readonly keys: readonly string[];
  readonly mode: Mode;
  /** Of those that a limit counts; missing for one. */
  readonly places?: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** Of a candidate: for how long it is one, whether it leads or waits. */
  readonly holdMs: number;
  readonly autoExtend?: false;
  readonly minHoldMs?: number;
  readonly release?: 'on-expiry';
  readonly maxHoldMs?: number;
  /** It locks as `@CronLock` does: `minHoldMs` is `atLeast`, `maxHoldMs` is `atMost`, and its key has the time of the schedule. */
  readonly isJob?: true;
  /** It gives up after so long. */
  readonly patienceMs?: number;
  /** It replaces the holder, whose work may go on for so long. Such a call does not wait in line. */
  readonly replaceWaitMs?: number;
  /** So long after its signal its work stops. Default: at once. */
  readonly stopsAfterMs?: number;
  /** It does not listen to the signal, and looks at the lock when its work is done. */
  readonly ignoresSignal?: true;
  readonly extend?: { readonly afterMs: number; readonly ttlMs: number };
  /** Its work keeps the event loop of its process busy for so long, in the middle. */
  readonly blocksMs?: number;
  /** Asked for inside the section. */
  readonly inner?: Operation;
  readonly once?: OnceOperation;
  readonly lead?: LeadPlan;
  /** It sets the limit of its first key while it holds it. */
  readonly setLimit?: number;
  /** Only of one that it has without a section. */
  readonly detach?: DetachPlan;
}

/** What a candidate does when it leads. */
export interface LeadPlan {
  readonly rotateEveryMs?: number;
  /** One after the other, and then from the first on. */
  readonly terms: readonly TermPlan[];
}

export interface TermPlan {
  /** Its work is over at once, and it goes on to lead; or lasts until the signal aborts, and then returns or rejects. */
  readonly work: 'returns' | 'lasts' | 'rejects';
  /** It ends the term itself, so long after the election. */
  readonly end?: {
    readonly afterMs: number;
    /** By the lead that the work is given, by the candidacy, or by an error. */
    readonly how: 'lead.stepDown' | 'leadership.stepDown' | 'fails';
  };
  /** For so long it cleans up when the term is over. */
  readonly lingersMs: number;
}

export interface OnceOperation {
  readonly attempts: number;
  readonly keepDoneMs: number;
  readonly keepValue: boolean;
  readonly ends: 'returns' | 'throws' | 'gives up';
}

export interface CallerPlan {
  readonly startMs: number;
  readonly operations: readonly Operation[];
}

export interface ProcessPlan {
  readonly clock: ClockPlan;
  readonly startMs: number;
  readonly callers: readonly CallerPlan[];
  readonly handoff: boolean;
}

export interface ServerPlan {
  readonly clock: ClockPlan;
  readonly replicas: number;
}

/** What is different from one client of Redis to another, as the library meets it. */
export type ClientKind = 'ioredis' | 'node-redis' | 'glide';

/** How the library is set up in every process. */
export interface ServicePlan {
  readonly nodeTimeoutMs: number;
  readonly clockDrift: number;
  readonly shutdownTimeoutMs: number;
  /** Which client its connections behave like. Default: ioredis. */
  readonly client?: ClientKind;
  /** Locks are kept by a driver, in another database. */
  readonly hasDriver?: true;
  readonly restartGuard?: { readonly maxTtlMs: number };
  readonly replicas?: { readonly ack: number; readonly timeoutMs: number };
}

export type Fault = { readonly atMs: number } & (
  | { readonly kind: 'process-killed'; readonly process: number; readonly againAfterMs?: number }
  | { readonly kind: 'process-vanished'; readonly process: number }
  | { readonly kind: 'process-shut-down'; readonly process: number }
  | {
      readonly kind: 'process-stands-still';
      readonly process: number;
      readonly forMs: number;
      readonly how: Standstill;
    }
  | { readonly kind: 'process-clock-set'; readonly process: number; readonly byMs: number }
  | { readonly kind: 'server-frozen'; readonly server: number; readonly forMs: number }
  | {
      readonly kind: 'server-slow';
      readonly server: number;
      readonly forMs: number;
      readonly eachMs: number;
    }
  | ({
      readonly kind: 'server-restarted';
      readonly server: number;
      readonly forMs: number;
      readonly loadingMs: number;
    } & (
      | { readonly data: 'kept' | 'lost' }
      /** What was written in this time before is missing. */
      | { readonly data: 'older'; readonly missingMs: number }
    ))
  | { readonly kind: 'server-flushed'; readonly server: number }
  | { readonly kind: 'scripts-flushed'; readonly server: number }
  | { readonly kind: 'memory-full'; readonly server: number; readonly forMs: number }
  | { readonly kind: 'server-clock-set'; readonly server: number; readonly byMs: number }
  | { readonly kind: 'line-lost'; readonly server: number; readonly key: string }
  | { readonly kind: 'key-lost'; readonly server: number; readonly key: string }
  /** Its data are those of a moment before, and everybody stays connected: a snapshot was restored. */
  | { readonly kind: 'data-restored'; readonly server: number; readonly missingMs: number }
  /** Other software writes something else where a lock has its data. */
  | {
      readonly kind: 'foreign-value';
      readonly server: number;
      readonly key: string;
      readonly at: 'main' | 'fence' | 'queue' | 'holders';
      readonly forMs: number;
    }
  /** The user of the connections has no right to one key. */
  | {
      readonly kind: 'key-forbidden';
      readonly server: number;
      readonly key: string;
      readonly forMs: number;
    }
  /** Somebody who may publish sends what scripts send, to everybody who listens. */
  | { readonly kind: 'messages-forged'; readonly server: number; readonly key: string }
  | { readonly kind: 'connections-reset'; readonly server: number }
  /** The password is another one: it ends all connections, and accepts no login until processes have the new password. */
  | { readonly kind: 'password-changed'; readonly server: number; readonly forMs: number }
  | {
      readonly kind: 'link-cut';
      readonly process: number;
      readonly server: number;
      readonly directions: readonly Direction[];
      readonly forMs: number;
    }
  | {
      readonly kind: 'link-slow';
      readonly process: number;
      readonly server: number;
      readonly forMs: number;
      readonly extraMs: number;
    }
  | {
      readonly kind: 'link-stalled' | 'link-reset';
      readonly process: number;
      readonly server: number;
    }
  | { readonly kind: 'fail-over'; readonly server: number; readonly to: 'first' | 'last' }
  | { readonly kind: 'replication-cut'; readonly server: number; readonly forMs: number }
  | { readonly kind: 'force-released'; readonly process: number; readonly key: string }
  /** An operator looks at a key, and ends the locks that were seen, or forgets the work, a while later. */
  | {
      readonly kind: 'seen-released' | 'work-forgotten';
      readonly process: number;
      readonly key: string;
      readonly afterMs: number;
    }
  /** An operator ends the locks of a process. */
  | {
      readonly kind: 'instance-released';
      readonly process: number;
      readonly victim: number;
      readonly afterMs: number;
    }
);

export type FaultKind = Fault['kind'];

/** What an operator does after a look. */
export type Intervention = Extract<Fault, { readonly process: number; readonly afterMs: number }>;

export interface Scenario {
  readonly profile: ProfileName;
  readonly seed: number;
  readonly network: LinkPlan;
  readonly servers: readonly ServerPlan[];
  readonly processes: readonly ProcessPlan[];
  readonly service: ServicePlan;
  readonly faults: readonly Fault[];
}

/** Whether any call replaces the holder. */
export const replaces = ({ processes }: Scenario): boolean =>
  processes.some(({ callers }) =>
    callers.some(({ operations }) =>
      operations.some(({ replaceWaitMs }) => replaceWaitMs !== undefined),
    ),
  );

/** Whether it is an intervention of an operator. */
export const isOfOperator = ({ kind }: Fault): boolean =>
  kind === 'force-released' ||
  kind === 'seen-released' ||
  kind === 'instance-released' ||
  kind === 'work-forgotten';
