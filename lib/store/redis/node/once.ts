import type { OnceReference, OnceStore } from '../../once-store.js';
import { beginScript, endScript, type EndCall } from '../scripts/once.js';
import type { Server } from './server.js';

/** Replicas have to have these, where that is asked for. Without the others, the work would only be tried again, or count as tried. */
const TO_STAY: ReadonlySet<EndCall['what']> = new Set(['done', 'final']);

/** The records of work that is to be done once, at one node. */
export function onceAt(server: Pick<Server, 'ask'>): OnceStore {
  const end = (
    { key, token, owner }: OnceReference,
    step: Pick<EndCall, 'what' | 'attempt' | 'text' | 'lifeMs'>,
  ) => {
    const durability = TO_STAY.has(step.what) ? undefined : 'at once';
    return server.ask(endScript, { ...step, key, token, owner, durability });
  };
  return {
    begin: ({ key, token, owner, attempts, lifeMs, keepMs }) =>
      server.ask(beginScript, { key, token, owner, attempts, lifeMs, keepMs }),
    keep: ({ lifeMs, attempt, ...reference }) => end(reference, { what: 'keep', lifeMs, attempt }),
    finish: ({ end: what, lifeMs, attempt, text, ...reference }) =>
      end(reference, { what, lifeMs, attempt, text }),
  };
}
