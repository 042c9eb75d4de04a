import type { Runtime } from '../runtime.js';
import type { Session } from '../session.js';
import type { Target } from '../target.js';
import type { Found } from './finding.js';
import type { Server } from './server.js';

/** Everything that is examined. */
export interface Subject {
  readonly kind: 'one Redis' | 'a Cluster' | 'several masters';
  /** How many places vote on a lock; a Cluster is one. */
  readonly nodes: number;
  /** The servers that answer. */
  readonly servers: readonly Server[];
  readonly target: Target;
  readonly session: Session;
  readonly runtime: Runtime;
}

/** Looks at one thing at each server. Never rejects. */
export interface ServerCheck {
  readonly name: string;
  readonly examine: (server: Server, subject: Subject) => Promise<readonly Found[]>;
}

/** Looks at one thing of all servers together. Never rejects. */
export interface CommonCheck {
  readonly name: string;
  readonly examine: (subject: Subject) => Promise<readonly Found[]>;
}
