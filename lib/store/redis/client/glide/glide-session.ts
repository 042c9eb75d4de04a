import { CLOSED } from '../reply-errors.js';
import { isBroken, plainReply, requestError } from './glide-replies.js';
import type { OwnGlideClient, Route } from './glide-shape.js';

/** GLIDE keeps the order of this many requests. With more than about 60 on their way, later ones overtake earlier ones. */
const MOST_ON_THEIR_WAY = 32;

/** The most of them to one master of a Cluster: one that is frozen leaves room for the others. */
const MOST_TO_ONE_MASTER = 24;

/** To which master of a Cluster a request goes now, where that is known. */
export type MasterOf = () => string | undefined;

interface Request {
  readonly args: string[];
  readonly route: Route | undefined;
  readonly masterOf: MasterOf | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface SessionEvents {
  /** The server replied with an error. */
  readonly onRefused: (reply: Error) => void;
  /** A request failed with the connection. */
  readonly onBroken: () => void;
}

/** One client of GLIDE, from its creation until something is wrong with it. */
export class GlideSession {
  readonly #client: OwnGlideClient;
  readonly #events: SessionEvents;
  #held: Request[] = [];
  #onTheirWay = 0;
  readonly #toMasters = new Map<string, number>();
  #replies = 0;
  #waits = 0;
  #isEnded = false;

  constructor(client: OwnGlideClient, events: SessionEvents) {
    this.#client = client;
    this.#events = events;
  }

  get isBusy(): boolean {
    return this.#onTheirWay > 0;
  }

  /** The server owes a reply to WAIT, and none that follow it before. */
  get isWaiting(): boolean {
    return this.#waits > 0;
  }

  /** How many replies have come, errors too. */
  get replies(): number {
    return this.#replies;
  }

  /** Requests with the same `masterOf` stay in their order, also if a slot moves while they are held. */
  send(args: string[], route?: Route, masterOf?: MasterOf): Promise<unknown> {
    if (this.#isEnded) return Promise.reject(new Error(CLOSED));
    return new Promise((resolve, reject) => {
      this.#held.push({ args, route, masterOf, resolve, reject });
      this.#sendHeld();
    });
  }

  /** What has no reply yet fails. GLIDE sends nothing of it any more. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const held = this.#held;
    this.#held = [];
    this.#client.close();
    for (const { reject } of held) reject(new Error(CLOSED));
  }

  /** What is held has none: it is sent as soon as it has. */
  #hasRoom({ masterOf }: Request): boolean {
    const master = masterOf?.();
    const toMaster = master === undefined ? 0 : (this.#toMasters.get(master) ?? 0);
    return this.#onTheirWay < MOST_ON_THEIR_WAY && toMaster < MOST_TO_ONE_MASTER;
  }

  #sendNow({ args, route, masterOf, resolve, reject }: Request): void {
    const master = masterOf?.();
    const isWait = args[0] === 'wait';
    const count = (more: 1 | -1): void => {
      this.#onTheirWay += more;
      if (isWait) this.#waits += more;
      if (master !== undefined)
        this.#toMasters.set(master, (this.#toMasters.get(master) ?? 0) + more);
    };
    count(1);
    this.#client.customCommand(args, route && { route }).then(
      (reply) => {
        count(-1);
        this.#arrived();
        resolve(plainReply(reply));
      },
      (error: unknown) => {
        count(-1);
        const failure = requestError(error);
        if (failure.name === 'ReplyError') {
          this.#arrived();
          reject(failure);
          this.#events.onRefused(failure);
          return;
        }
        reject(failure);
        if (isBroken(error)) this.#events.onBroken();
        this.#sendHeld();
      },
    );
  }

  #arrived(): void {
    this.#replies += 1;
    this.#sendHeld();
  }

  #sendHeld(): void {
    while (!this.#isEnded && this.#onTheirWay < MOST_ON_THEIR_WAY) {
      const at = this.#held.findIndex((request) => this.#hasRoom(request));
      const [next] = at < 0 ? [] : this.#held.splice(at, 1);
      if (next === undefined) return;
      this.#sendNow(next);
    }
  }
}
