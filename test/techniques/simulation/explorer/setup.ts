/** What the explorer is given: the world at its beginning, and what is done to it. Both are plain data: the same data give the same picture. */
import type { Mode } from '../scenario.js';

/** The world at its beginning. */
export interface Setup {
  readonly seed: number;
  /** Redis servers that know nothing of each other. A majority of them grants a lock. */
  readonly nodes: number;
  readonly processes: number;
  readonly ttlMs: number;
  /** By how much a clock may differ from the truth at the most, in either direction. */
  readonly skewMs: number;
  readonly network: NetworkConditions;
  /** Whether a node that has lost its data grants nothing until all leases that it may have forgotten are over. */
  readonly restartGuard: boolean;
}

export interface NetworkConditions {
  /** Of each message, in one direction. */
  readonly latencyMs: number;
  /** The part of the packets that is lost, from 0 to 1. TCP sends them again. */
  readonly lossRate: number;
}

export type Action =
  /** The process locks the key, works for so long, writes to the database, and releases the lock. */
  | {
      readonly kind: 'lock';
      readonly process: number;
      readonly mode: Mode;
      readonly workMs: number;
      /** It does not look at its lock before it writes. */
      readonly isCareless?: true;
    }
  | { readonly kind: 'pause'; readonly process: number; readonly forMs: number }
  | { readonly kind: 'kill' | 'restart'; readonly process: number }
  | { readonly kind: 'stop'; readonly node: number; readonly data: 'kept' | 'lost' }
  | { readonly kind: 'start'; readonly node: number }
  | { readonly kind: 'cut' | 'join'; readonly process: number; readonly node: number }
  | ({ readonly kind: 'network' } & NetworkConditions);

/** An action at its time. */
export interface Step {
  readonly atMs: number;
  readonly action: Action;
}

/** What every process locks. */
export const KEY = 'report';

export const USUAL: Setup = {
  seed: 1,
  nodes: 1,
  processes: 3,
  ttlMs: 5_000,
  skewMs: 0,
  network: { latencyMs: 20, lossRate: 0 },
  restartGuard: false,
};
