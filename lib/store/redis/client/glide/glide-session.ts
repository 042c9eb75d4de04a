import { CLOSED } from '../reply-errors.js';
import { isBroken, plainReply, requestError } from './glide-replies.js';
import type { OwnGlideClient, Route } from './glide-shape.js';

/** GLIDE keeps the order of this many requests. With more than about 60 on their way, later ones overtake earlier ones. */
const MOST_ON_THEIR_WAY = 32;

interface Request {
  readonly args: string[];
  readonly route: Route | undefined;
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

  send(args: string[], route?: Route): Promise<unknown> {
    if (this.#isEnded) return Promise.reject(new Error(CLOSED));
    return new Promise((resolve, reject) => {
      const request = { args, route, resolve, reject };
      if (this.#onTheirWay < MOST_ON_THEIR_WAY && this.#held.length === 0) this.#sendNow(request);
      else this.#held.push(request);
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

  #sendNow({ args, route, resolve, reject }: Request): void {
    const isWait = args[0] === 'wait';
    const settled = (): void => {
      this.#onTheirWay -= 1;
      if (isWait) this.#waits -= 1;
    };
    this.#onTheirWay += 1;
    if (isWait) this.#waits += 1;
    this.#client.customCommand(args, route && { route }).then(
      (reply) => {
        settled();
        this.#arrived();
        resolve(plainReply(reply));
      },
      (error: unknown) => {
        settled();
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
      const next = this.#held.shift();
      if (next === undefined) return;
      this.#sendNow(next);
    }
  }
}
