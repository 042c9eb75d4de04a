import type { SimServer } from '../world/sim-server.js';
import type { World } from '../world/world.js';
import type { News } from './facts.js';
import { KEY } from './setup.js';

const MAIN = `lock:${KEY}`;
const HOLDERS = `{lock:${KEY}}:holders`;
const QUEUE = `{lock:${KEY}}:queue`;

/** A change of an end by less than this is no other end, in ms: Redis keeps whole milliseconds. */
const SAME_END_MS = 5;

type Says = Extract<News, { type: 'says' }>;

interface NodeWatchOptions {
  readonly world: World;
  readonly server: SimServer;
  readonly index: number;
  /** Which process has made an owner token. */
  readonly processOf: (token: string) => number | undefined;
}

/** Reads in the data of a node who holds the key there. */
export class NodeWatch {
  readonly #options: NodeWatchOptions;
  #last: Says;

  constructor(options: NodeWatchOptions) {
    this.#options = options;
    this.#last = { type: 'says', node: options.index, holders: [], waiting: 0, untilMs: 0 };
  }

  /** What is new since it was looked at last; `undefined`: nothing. */
  look(): Says | undefined {
    const now = this.#read();
    const { holders, waiting, untilMs } = this.#last;
    const isSame =
      now.holders.join() === holders.join() &&
      now.waiting === waiting &&
      Math.abs(now.untilMs - untilMs) < SAME_END_MS;
    if (isSame) return undefined;
    this.#last = now;
    return now;
  }

  #read(): Says {
    const { world, server, index, processOf } = this.#options;
    const { wallUs, rate } = server.clock;
    const keys = server.server.visible(wallUs);
    const main = keys.find(({ key }) => key === MAIN);
    const queue = keys.find(({ key }) => key === QUEUE)?.value ?? [];
    const together = keys.find(({ key }) => key === HOLDERS)?.value ?? [];
    const tokens = [main?.value ?? [], together].flat();
    const holders = main === undefined ? [] : tokens.map(processOf).filter((each) => each != null);
    return {
      ...{ type: 'says', node: index, waiting: queue.length / 2 },
      holders: [...new Set(holders)].sort(),
      untilMs: main ? world.nowMs + (main.expiresAtMs - wallUs / 1_000) / rate : 0,
    };
  }
}
