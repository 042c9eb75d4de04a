import type { NodeFailure } from '../errors.js';

/** The store did not reply, or its reply cannot be trusted. */
export interface Unavailable {
  readonly status: 'unavailable';
  readonly nodes: readonly NodeFailure[];
  /** Whether the same request may succeed later without a change of settings. */
  readonly transient: boolean;
  /** The request never left this process, or was refused before it changed anything: it can have left nothing behind. */
  readonly sent?: false;
}

/** The server has refused the request. */
export const isRefused = ({ transient, sent }: Unavailable): boolean =>
  !transient && sent !== false;
