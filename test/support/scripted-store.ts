import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  Held,
  LeaseReference,
  LeaseRequest,
  LineCall,
  LeaseStore,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  StoreHealth,
  TransferOutcome,
  TransferRequest,
  Unavailable,
  WriteOutcome,
  WriteRequest,
} from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { deferred } from './eventually.js';

/** An outage that passes. */
export const OUTAGE: Unavailable = {
  status: 'unavailable',
  nodes: [{ node: 'redis:6379', kind: 'connection', message: 'refused' }],
  transient: true,
};

/** An outage that only another setting ends. */
export const FORBIDDEN: Unavailable = {
  status: 'unavailable',
  nodes: [{ node: 'redis:6379', kind: 'error', message: 'NOPERM' }],
  transient: false,
};

/** The refusal by a holder whose lease lasts for so long. */
export function heldFor(remainingMs: number, key = 'key'): Held {
  return { status: 'held', key, remainingMs, checkAgainMs: remainingMs };
}

/** An answer that never comes. */
export function silence<T>(): Promise<T> {
  return deferred<T>().promise;
}

type Answer<Request, Outcome> = (request: Request) => Outcome | Promise<Outcome>;

/** A store that records what it is asked, and answers what the test says: by default, yes to everything. */
export class ScriptedStore implements LeaseStore, Pick<LockStore, 'admin' | 'transfer' | 'write'> {
  /** Nobody else is there. */
  readonly admin = new MemoryLockStore().admin;
  readonly acquired: AcquireRequest[] = [];
  readonly extended: (readonly LeaseRequest[])[] = [];
  readonly released: LeaseReference[] = [];
  readonly transferred: TransferRequest[] = [];
  readonly left: string[] = [];
  listened = 0;
  isPlainFirst = false;

  onAcquire: Answer<AcquireRequest, AcquireOutcome> = () => ({
    status: 'granted',
    fencingToken: this.acquired.length,
  });
  onExtend: Answer<LeaseRequest, ExtendOutcome> = () => ({ status: 'extended' });
  onRelease: Answer<LeaseReference, ReleaseOutcome> = () => ({ status: 'released' });
  onTransfer: Answer<TransferRequest, TransferOutcome> = () => ({ status: 'transferred' });
  onWrite: Answer<WriteRequest, WriteOutcome> = () => ({ status: 'written', replies: [] });
  onListen: () => 'listening' | 'polling' | Promise<'listening' | 'polling'> = () => 'listening';
  #listener: ReleaseListener = () => undefined;

  /** A release somewhere else is reported, or that somebody in line was given the key. */
  reportReleased(key?: string, call?: LineCall): void {
    this.#listener(key, call);
  }

  async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    this.acquired.push(request);
    // A line that never sleeps is to fail its test, not to hang it.
    return this.acquired.length > 10_000 ? FORBIDDEN : this.onAcquire(request);
  }

  extend(
    leases: readonly LeaseRequest[],
    onDecided?: (index: number, outcome: ExtendOutcome) => void,
  ): Promise<readonly ExtendOutcome[]> {
    this.extended.push(leases);
    return Promise.all(
      leases.map(async (lease, index) => {
        const outcome = await this.onExtend(lease);
        onDecided?.(index, outcome);
        return outcome;
      }),
    );
  }

  async release(lease: LeaseReference): Promise<ReleaseOutcome> {
    this.released.push(lease);
    return this.onRelease(lease);
  }

  async transfer(request: TransferRequest): Promise<TransferOutcome> {
    this.transferred.push(request);
    return this.onTransfer(request);
  }

  async write(request: WriteRequest): Promise<WriteOutcome> {
    return this.onWrite(request);
  }

  async listen(listener: ReleaseListener): Promise<'listening' | 'polling'> {
    this.listened += 1;
    this.#listener = listener;
    return this.onListen();
  }

  async leave({ keys }: LeaseRequest): Promise<void> {
    this.left.push(...keys);
  }

  async open(): Promise<void> {
    // Nothing is to be opened.
  }

  health(): Promise<StoreHealth> {
    return new MemoryLockStore().health();
  }

  async close(): Promise<void> {
    // Nothing is open.
  }
}
