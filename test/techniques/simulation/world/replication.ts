import { newServer, type Server } from './server.js';
import type { World } from './world.js';

/** How far behind replicas are, in µs. */
const USUAL_LAG_US = 500;

interface Acknowledgement {
  readonly offset: number;
  readonly count: number;
  readonly tell: () => void;
}

/** A replica: what it has of its master's data. */
interface Replica {
  data: Server;
  offset: number;
}

/** Sends what a master writes to its replicas, later. */
export class Replication {
  readonly #world: World;
  readonly #waiting = new Set<Acknowledgement>();
  readonly #name: string;
  #replicas: Replica[] = [];
  #offset = 0;
  #promotions = 0;
  /** Nothing arrives. */
  isCut = false;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
  }

  get replicas(): number {
    return this.#replicas.length;
  }

  /** As many replicas, which have all that the master has. */
  connect(replicas: number, master: Server): void {
    this.#offset = master.offset;
    const data = replicas === 0 ? newServer('') : master.copy('');
    this.#replicas = Array.from({ length: replicas }, () => ({ data, offset: master.offset }));
    master.setReplicas(replicas);
  }

  /** The master may have changed. */
  written(master: Server): void {
    if (this.#replicas.length === 0 || master.offset === this.#offset) return;
    this.#offset = master.offset;
    const offset = this.#offset;
    const data = master.copy('');
    for (const replica of this.#replicas) {
      const lagUs = USUAL_LAG_US * (0.5 + this.#world.random.network.fraction());
      this.#world.in(lagUs, () => {
        this.#arrive(replica, { data, offset });
      });
    }
  }

  /** WAIT. */
  whenAcknowledged(count: number, timeoutMs: number, tell: (count: number) => void): void {
    const offset = this.#offset;
    const waiting: Acknowledgement = {
      offset,
      count,
      tell: () => {
        if (this.#waiting.delete(waiting)) tell(this.#have(offset));
      },
    };
    this.#waiting.add(waiting);
    this.#world.in(timeoutMs * 1_000, waiting.tell);
    this.#tellAll();
  }

  /** A server with what a replica knows: the one that knows the most, or the least. */
  promoted(which: 'first' | 'last'): Server | undefined {
    const sorted = [...this.#replicas].sort((a, b) => b.offset - a.offset);
    const replica = which === 'first' ? sorted[0] : sorted.at(-1);
    this.#promotions += 1;
    return replica?.data.copy(`${this.#name} promoted ${String(this.#promotions)}`);
  }

  /** The connection to the replicas is restored: they get all that they have missed. */
  catchUp(master: Server): void {
    this.isCut = false;
    this.#offset = -1;
    this.written(master);
  }

  #arrive(replica: Replica, { data, offset }: Replica): void {
    // A replica of a master that is none any more gets nothing.
    if (this.isCut || offset < replica.offset || !this.#replicas.includes(replica)) return;
    replica.data = data;
    replica.offset = offset;
    this.#world.in(USUAL_LAG_US, () => {
      this.#tellAll();
    });
  }

  #tellAll(): void {
    for (const { offset, count, tell } of [...this.#waiting])
      if (this.#have(offset) >= count) tell();
  }

  #have(offset: number): number {
    return this.#replicas.filter((replica) => replica.offset >= offset).length;
  }
}
