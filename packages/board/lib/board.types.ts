import type {
  AuditEntry,
  HotKeys,
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
}

export interface BoardHealth {
  readonly nodes: readonly BoardNode[];
  readonly quorum: number;
  readonly hasQuorum: boolean;
}

/** What does not change with every lock, and costs more to find out. */
export interface BoardContext {
  readonly instances: readonly InstanceInfo[];
  readonly hot: HotKeys;
  /** What operators did to any key, the newest first. */
  readonly audit: readonly AuditEntry[];
}

/** What the page shows of all keys. Dates become ISO texts on the way. */
export interface BoardSnapshot extends Partial<BoardContext> {
  readonly at: Date;
  readonly locks: readonly LockSummary[];
  /** There are more keys than these. */
  readonly more: boolean;
  readonly health?: BoardHealth | undefined;
  /** Why the store could not be asked: what is held is not known. */
  readonly problem?: string | undefined;
}

/** What the page shows of one key. */
export interface BoardKey {
  readonly at: Date;
  readonly lock?: LockDescription;
  readonly problem?: string | undefined;
}
