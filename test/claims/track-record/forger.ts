import { Redis, type RedisOptions } from 'ioredis';
import type { RedisServer } from '../../support/redis-server.js';

/** A message as everybody may see it who may subscribe. */
export interface Message {
  readonly channel: string;
  readonly text: string;
}

/** Fencing tokens that nobody was granted: as large as a number can be, and somewhat smaller. */
export const FORGED_TOKENS = [9_007_199_254_740_000, 4_007_199_254_740_000] as const;

/** Tokens and ids have digits; a word without one says what kind of message it is. */
const NAME = /^(?=.*\d).{8,}$/;

/** So many of the last tokens and ids it tries. */
const MOST_NAMES = 6;

/** Numbers that may be fencing tokens or times in µs. */
const LARGE = 1e12;

/** Delimiters of the messages, whatever they are. */
const DELIMITERS = /([\s":,{}[\]]+)/;

/** So many of the last messages it varies. */
const MOST_TEMPLATES = 12;

/**
 * A client that may only publish and subscribe. It knows nothing of the format of messages. It replays what it has seen, and varies it: it
 * puts other numbers, names and keys in the places of those that it found.
 */
export class Forger {
  readonly seen: Message[] = [];
  readonly #listener: Redis;
  readonly #publisher: Redis;
  readonly #forged = new Set<string>();

  private constructor(listener: Redis, publisher: Redis) {
    this.#listener = listener;
    this.#publisher = publisher;
    listener.on('pmessage', (_pattern, channel, text) => {
      if (!this.#forged.has(text)) this.seen.push({ channel, text });
    });
  }

  static async start(server: RedisServer): Promise<Forger> {
    const rights = ['resetkeys', 'allchannels', '-@all', '+publish', '+psubscribe'];
    await server.command('ACL', 'SETUSER', 'forger', 'on', '>secret', ...rights);
    const options: RedisOptions = {
      ...{ host: '127.0.0.1', port: server.port, username: 'forger', password: 'secret' },
      // These would send commands that it may not send.
      ...{ enableReadyCheck: false, disableClientInfo: true, retryStrategy: () => null },
    };
    const forger = new Forger(new Redis(options), new Redis(options));
    await forger.#listener.psubscribe('*');
    return forger;
  }

  stop(): void {
    this.#listener.disconnect();
    this.#publisher.disconnect();
  }

  /** Sends everything that can be made of what it has seen lately, for one key, to all who listen. Resolves when all of it was delivered. */
  async forge({ key, keys, numbers }: Target): Promise<number> {
    const recent = this.seen.filter(({ text }) => text !== '').slice(-MOST_TEMPLATES);
    const atoms = recent.flatMap(({ text }) => text.split(DELIMITERS));
    const names = [...new Set(atoms.filter((atom) => isName(atom, keys)).reverse())].slice(
      0,
      MOST_NAMES,
    );
    const channels = [...new Set(this.seen.slice(-MOST_TEMPLATES).map(({ channel }) => channel))];
    // A message may name nothing but the key.
    if (names.length === 0) names.push('');
    const texts = new Set(
      [...new Map(recent.map(({ text }) => [shapeOf(text, keys), text])).values()].flatMap((text) =>
        names.flatMap((name) =>
          numbers.flatMap((number) => varied(text, { key, keys, name, number })),
        ),
      ),
    );
    const all = channels.flatMap((channel) => [...texts].map((text) => ({ channel, text })));
    const pipeline = this.#publisher.pipeline();
    for (const { channel, text } of all) {
      this.#forged.add(text);
      pipeline.publish(channel, text);
    }
    await pipeline.exec();
    return all.length;
  }
}

export interface Target {
  readonly key: string;
  /** All keys, so that those in messages are known. */
  readonly keys: readonly string[];
  readonly numbers: readonly number[];
}

const isNumber = (atom: string): boolean => /^\d+$/.test(atom);

const isName = (atom: string, keys: readonly string[]): boolean =>
  NAME.test(atom) && !isNumber(atom) && !keys.includes(atom);

/** Messages that differ in their values only are alike. */
const shapeOf = (text: string, keys: readonly string[]): string =>
  text
    .split(DELIMITERS)
    .map((atom) => (isNumber(atom) ? '#' : isName(atom, keys) ? '$' : atom))
    .join('');

interface Variation extends Omit<Target, 'numbers'> {
  readonly name: string;
  readonly number: number;
}

/** The message with another key and name; and with other large numbers, all of them, or each alone. */
function varied(text: string, { key, keys, name, number }: Variation): readonly string[] {
  const atoms = text
    .split(DELIMITERS)
    .map((atom) => (keys.includes(atom) ? key : isName(atom, keys) ? name : atom));
  const places = atoms.flatMap((atom, place) =>
    isNumber(atom) && Number(atom) > LARGE ? [place] : [],
  );
  const now = String(Date.now() * 1_000);
  const withNumbers = (chosen: readonly number[]): string =>
    atoms
      .map((atom, place) =>
        chosen.includes(place) ? String(number) : places.includes(place) ? now : atom,
      )
      .join('');
  return [
    ...places.map((place) => withNumbers([place])),
    withNumbers(places),
    withNumbers([]),
    atoms.join(''),
  ];
}
