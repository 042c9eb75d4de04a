import type {
  AuditEntry,
  CallOrigin,
  HolderInfo,
  InstanceInfo,
  LockDescription,
  LockSummary,
  WaiterInfo,
} from 'nestjs-holdfast/admin';
import type { BoardKey, BoardNode, BoardSnapshot } from '../board.types.js';

/** A value as it arrives: JSON has no dates, and no endless numbers. */
type Sent<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Sent<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: Sent<T[Name]> }
      : T;

export type Snapshot = Sent<BoardSnapshot>;
export type KeyAnswer = Sent<BoardKey>;
export type Row = Sent<LockSummary>;
export type Lock = Sent<LockDescription>;
export type Holder = Sent<HolderInfo>;
export type Waiter = Sent<WaiterInfo>;
export type Origin = Sent<CallOrigin>;
export type Instance = Sent<InstanceInfo>;
export type Entry = Sent<AuditEntry>;
export type Node = Sent<BoardNode>;
