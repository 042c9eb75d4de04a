import { isCount, luaText, script, type Verb } from './script.js';

interface QuarantineCall {
  /** A server without an epoch key never granted anything, instead of having lost everything. */
  readonly isNew: boolean;
}

/** A server that may have forgotten leases grants none. */
export interface Quarantined {
  readonly status: 'quarantined';
  readonly leftMs: number;
}

export const quarantinedFor = (us: number): Quarantined => ({
  status: 'quarantined',
  leftMs: Math.ceil(us / 1_000),
});

/** Looks at the guard of a server: how many ms of quarantine are left. */
export const quarantineScript: Verb<QuarantineCall, number> = {
  encode: ({ isNew }, { epoch = '', options }) => [
    1,
    epoch,
    options.restartGuard?.maxTtlMs ?? 0,
    isNew ? 1 : 0,
  ],
  decode: (reply) => (isCount(reply) ? reply : undefined),
  ...script(luaText('quarantine'), 'quarantine'),
};
