import type {
  CallOrigin,
  HolderInfo,
  InstanceInfo,
  PastHoldInfo,
  WaiterInfo,
} from 'nestjs-holdfast/admin';
import type {
  BoardAudit,
  BoardKey,
  BoardKeys,
  BoardLock,
  BoardNode,
  BoardRow,
  BoardSnapshot,
  BoardStatus,
} from '../board.types.js';

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
export type Status = Sent<BoardStatus>;
export type Keys = Sent<BoardKeys>;
export type Row = Sent<BoardRow>;
export type Lock = Sent<BoardLock>;
export type Holder = Sent<HolderInfo>;
export type Waiter = Sent<WaiterInfo>;
export type Past = Sent<PastHoldInfo>;
export type Origin = Sent<CallOrigin>;
export type Instance = Sent<InstanceInfo>;
export type Entry = Sent<BoardAudit>;
export type Node = Sent<BoardNode>;
