import type { Runtime } from '../../../time/runtime.js';
import type { ExtendOutcome, LeaseRenewal } from '../../lock-store.js';
import type { RedisSource } from '../client/redis-client.js';
import { RedisStore } from '../node/redis-store.js';
import type { RedisNodeOptions } from '../node/server.js';
import { raiseFenceScript } from '../scripts/raise-fence.js';
import type { Standing } from './standing-leases.js';

/** A lease that a voter lacks is brought to it after so long, and again; the last pause repeats for as long as it stands. */
const BRING_AFTER_MS = [50, 500, 2_000] as const;

/** What it has to know of the others. */
interface QuorumOfVoter {
  readonly situation: () => string;
  readonly onIdentified: () => void;
}

/** One of several masters: a lease that a majority has is brought to it. */
export class Voter extends RedisStore {
  /** Leases on their way to it. */
  readonly #bringing = new Set<Standing>();
  #isClosing = false;
  readonly #quorum: QuorumOfVoter;

  constructor(
    source: RedisSource,
    options: RedisNodeOptions,
    runtime: Runtime,
    quorum: QuorumOfVoter,
  ) {
    super(source, options, runtime, 'in a quorum');
    this.#quorum = quorum;
  }

  /** The node is reachable, and grants no locks yet, because it may have forgotten leases. */
  get isQuarantined(): boolean {
    return this.isThere && this.watch.isQuarantined;
  }

  override situation(): string {
    return this.#quorum.situation();
  }

  /**
   * Whether it has a lease, as a renewal would say. It only raises the fence: a renewal may be on its way, and must not be overtaken by
   * one that gives the lease less time.
   */
  async has({ lease, lastToken }: Standing): Promise<ExtendOutcome> {
    const { keys, token, ttlMs } = lease;
    const call = { keys, token, ttlMs, fencingToken: lastToken };
    const answer = await this.ask(raiseFenceScript, call);
    if (answer.status === 'unavailable') return answer;
    const isThere = answer.status === 'raised';
    return isThere ? { status: 'extended' } : { status: 'lost', reason: 'released-elsewhere' };
  }

  /** Brings a lease until the server has it or the lease is over. A server that is away gets it by a renewal when it is back. */
  bring(standing: Standing): void {
    if (this.#bringing.has(standing) || this.#isClosing) return;
    this.#bringing.add(standing);
    standing.isBrought = true;
    this.#bringLater(standing, 0);
  }

  #bringLater(standing: Standing, tries: number): void {
    const pauseMs = BRING_AFTER_MS[tries] ?? BRING_AFTER_MS[2];
    this.scheduler.schedule(pauseMs * (1 + this.runtime.random()), () => {
      void this.#put(standing).then((result) => {
        const isAway = result === 'unavailable' && tries >= BRING_AFTER_MS.length - 1;
        if (result === 'settled' || isAway || this.#isClosing) this.#bringing.delete(standing);
        else this.#bringLater(standing, tries + 1);
      });
    });
  }

  /** Whether nothing is left to do here for a lease. Other voters are not asked, for their TTL may be longer by now. */
  async #put(standing: Standing): Promise<'settled' | 'taken' | 'unavailable'> {
    const lease = this.#renewalOf(standing);
    if (lease === undefined) return 'settled';
    const [vote] = await this.extend([lease]);
    if (vote?.status !== 'lost') return vote?.status === 'extended' ? 'settled' : 'unavailable';
    if (vote.fences === undefined) return 'taken';
    const still = this.#renewalOf(standing);
    if (still === undefined) return 'settled';
    const [restored] = await this.extend([{ ...still, expectedFences: vote.fences }]);
    return restored?.status === 'extended' ? 'settled' : 'taken';
  }

  /** What brings a lease here; `undefined` when it is over. */
  #renewalOf({ lease, lastToken, untilMs, state }: Standing): LeaseRenewal | undefined {
    const leftMs = Math.floor(untilMs - this.now());
    if (state === 'over' || leftMs <= 0 || this.#isClosing) return undefined;
    const { keys, token } = lease;
    const ttlMs = state === 'kept' ? leftMs : lease.ttlMs;
    return { keys, token, ttlMs, fencingToken: lastToken, validForMs: leftMs };
  }

  protected override identified(): void {
    this.#quorum.onIdentified();
  }

  override close(): Promise<void> {
    this.#isClosing = true;
    return super.close();
  }
}
