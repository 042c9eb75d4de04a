import type {
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceReference,
  OnceStore,
} from '../once-store.js';
import type { MemoryKeys } from './memory-keys.js';

/** What is known of work that is to be done once, in the memory of this process. */
export class MemoryOnceStore implements OnceStore {
  readonly #keys: MemoryKeys;

  constructor(keys: MemoryKeys) {
    this.#keys = keys;
  }

  begin(request: BeginRequest): Promise<BeginOutcome> {
    return Promise.resolve(this.#begin(request));
  }

  keep(request: KeepRequest): Promise<FinishOutcome> {
    const { key, owner, attempt, lifeMs } = request;
    const isOurs = this.#isOurs(request);
    if (isOurs) this.#keys.of(key).once = { state: 'running', attempt, owner, lifeMs };
    return Promise.resolve({ status: isOurs ? 'accepted' : 'superseded' });
  }

  finish(request: FinishRequest): Promise<FinishOutcome> {
    const { owner, end, text, lifeMs } = request;
    const key = this.#keys.of(request.key);
    if (!this.#isOurs(request)) {
      const isRepeated = key.once?.owner === owner && key.once.end === end;
      return Promise.resolve({ status: isRepeated ? 'accepted' : 'superseded' });
    }
    // The caller that returns it may not know its number.
    const attempt = end === 'returned' ? (key.once?.attempt ?? 1) - 1 : request.attempt;
    const state = end === 'done' ? 'done' : end === 'final' ? 'exhausted' : 'failed';
    key.once = { state, attempt, owner, end, text, lifeMs };
    return Promise.resolve({ status: 'accepted' });
  }

  #begin({ key: name, token, owner, attempts, lifeMs, keepMs }: BeginRequest): BeginOutcome {
    this.#keys.sweep();
    const key = this.#keys.of(name);
    const { state, attempt = 0, text, owner: before } = key.once ?? {};
    if (state === 'done') return { status: 'done', attempts: attempt, value: text };
    if (state === 'exhausted') return { status: 'exhausted', attempts: attempt, error: text };
    if (!key.isHeldBy(token)) return { status: 'lost', attempts: attempt };
    if (before === owner)
      return state === 'running'
        ? { status: 'begun', attempt }
        : { status: 'lost', attempts: attempt };
    if (attempt >= attempts) {
      // A process that died left no error.
      key.once = { state: 'exhausted', attempt, owner, end: 'final', text, lifeMs: keepMs };
      return { status: 'exhausted', attempts: attempt, error: text };
    }
    key.once = { state: 'running', attempt: attempt + 1, owner, lifeMs };
    return { status: 'begun', attempt: attempt + 1 };
  }

  /** An attempt is its owner's until another one begins; where nothing is known, the holder's of the lock. */
  #isOurs({ key: name, token, owner }: OnceReference): boolean {
    const key = this.#keys.of(name);
    if (key.once === undefined) return key.isHeldBy(token);
    return key.once.state === 'running' && key.once.owner === owner;
  }
}
