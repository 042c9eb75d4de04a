import type {
  ActivityMinute,
  AuditEntry,
  HotKey,
  InstanceInfo,
  LockDescription,
  LockSummary,
} from 'nestjs-holdfast/admin';

/** One Redis server, as `LockService.health()` tells of it. */
export interface BoardNode {
  readonly node: string;
  readonly reachable: boolean;
  readonly latencyMs?: number | undefined;
  readonly quarantinedForMs: number;
  readonly problem?: string | undefined;
  readonly remedy?: string | undefined;
  readonly since?: Date | undefined;
}

export interface BoardHealth {
  readonly nodes: readonly BoardNode[];
  readonly quorum: number;
  readonly hasQuorum: boolean;
  readonly warning?: string | undefined;
}

/** Whether locks can be granted now, and what to do if not. */
export interface BoardStatus {
  readonly level: 'good' | 'warning' | 'bad';
  readonly text: string;
  /** Why, and what to do. */
  readonly details: readonly string[];
  /** Since when it is so, as far as the application has noticed. */
  readonly since?: Date | undefined;
  /** The section of the runbook. */
  readonly section?: string | undefined;
}

export const FILTERS = [
  'all',
  'waited-for',
  'unresponsive',
  'detached',
  'once-failed',
  'leaders',
] as const;

export const SORTS = ['waiting', 'since', 'key'] as const;

/** Which keys a browser shows. */
export interface View {
  /** A part of their names. */
  readonly search: string;
  readonly filter: (typeof FILTERS)[number];
  readonly sort: (typeof SORTS)[number];
  /** 1 is the first. */
  readonly page: number;
  /** Only keys that this instance holds or waits for. */
  readonly instance: string;
}

/** A row of the page. */
export interface BoardRow extends LockSummary {
  /** How many callers wait, in all processes that reply. */
  readonly callers?: number;
  /** Since when the first of them waits. */
  readonly waitingSince?: Date;
}

/** An intervention, with some of its keys. */
export interface BoardAudit extends AuditEntry {
  /** How many keys are left out. */
  readonly others: number;
}

/** The description of a key, as the page shows it. */
export interface BoardLock extends Omit<LockDescription, 'audit'> {
  readonly audit: readonly BoardAudit[];
}

export interface BoardKeys {
  /** When the store was searched for them. */
  readonly at: Date;
  /** One page of those that are wanted. */
  readonly rows: readonly BoardRow[];
  readonly page: number;
  readonly pages: number;
  /** How many are wanted. */
  readonly found: number;
  readonly held: number;
  /** Processes in line, of all keys. */
  readonly waiting: number;
  /** Callers in all processes that reply. */
  readonly callers: number;
  /** The store has more keys than were read. */
  readonly more: boolean;
}

/** What the page shows of all keys. Dates become ISO texts on the way. */
export interface BoardSnapshot {
  readonly at: Date;
  readonly status: BoardStatus;
  /** What an operator should look at first. */
  readonly attention: readonly BoardRow[];
  /** Missing while they are searched for the first time, and while the store cannot be asked. */
  readonly keys?: BoardKeys | undefined;
  readonly instances?: readonly InstanceInfo[] | undefined;
  /** The ids of those that do not reply, or have not reported. */
  readonly unresponsive: readonly string[];
  /** The keys with the longest waits and the most refusals in the last 5 minutes. */
  readonly hot?: readonly HotKey[] | undefined;
  readonly hour?: readonly ActivityMinute[] | undefined;
  /** What operators did to any key, the newest first. */
  readonly audit?: readonly BoardAudit[] | undefined;
  readonly health?: BoardHealth | undefined;
}

/** What the page shows of one key. */
export interface BoardKey {
  readonly at: Date;
  readonly status: BoardStatus;
  readonly lock?: BoardLock | undefined;
  /** Why it cannot be shown. */
  readonly problem?: string | undefined;
}
