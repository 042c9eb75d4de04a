import type { RedisAnswer, RedisServer } from 'nestjs-holdfast/tools';
import type { Runtime } from '../runtime.js';
import { untilConnected } from './connection-end.js';

export type Answer = RedisAnswer;

/** The names of a key that no caller can lock. */
export type TrialNames = NonNullable<ReturnType<RedisServer['trialNames']>>;

/** A command of Redis, and what it takes. */
export type Command = Parameters<RedisServer['ask']>;

/** One server that is examined: a Redis, or one master of a Cluster. */
export class Server {
  readonly name: string;
  /** The prefix of the names of keys, with that of the application's client. */
  readonly prefix: string;
  readonly database: number;
  readonly isClusterNode: boolean;
  /** Trials that no lock and no other process notices. */
  readonly trials: Pick<RedisServer, 'trialNames' | 'tryMessage'>;
  readonly runtime: Runtime;
  /** Asks again if the connection ends. Never rejects. */
  readonly ask: RedisServer['ask'];
  readonly #infos = new Map<string, Promise<Answer>>();
  #epoch: Promise<Answer> | undefined;

  constructor(server: RedisServer, runtime: Runtime) {
    this.name = server.name;
    this.prefix = server.prefix;
    this.database = server.database;
    this.isClusterNode = server.isClusterNode;
    this.trials = {
      trialNames: () => server.trialNames(),
      tryMessage: (names) =>
        untilConnected(
          () => server.tryMessage(names),
          (problem) => (problem === undefined ? [] : [problem]),
        ),
    };
    this.ask = (...command) =>
      untilConnected(
        () => server.ask(...command),
        (answer) =>
          answer.status === 'failed' && answer.kind === 'connection' ? [answer.message] : [],
      );
    this.runtime = runtime;
  }

  /** One section of INFO, asked for once. */
  info(section: string): Promise<Answer> {
    const known = this.#infos.get(section) ?? this.ask('info', section);
    this.#infos.set(section, known);
    return known;
  }

  /** The account of the restart guard. On a Cluster there is none. */
  epoch(): Promise<Answer> {
    this.#epoch ??= this.isClusterNode
      ? Promise.resolve({ status: 'answered', value: null })
      : this.ask('get', `${this.prefix}{epoch}`);
    return this.#epoch;
  }
}

/** One field of a section of INFO; `undefined` where the server does not name it. */
export const fieldIn = (answer: Answer, name: string): string | undefined =>
  answer.status === 'answered' && typeof answer.value === 'string'
    ? new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(answer.value)?.[1]
    : undefined;

/** One setting, of an answer to CONFIG GET: a list of names and values, or what a client makes of that. */
export function settingIn(answer: Answer, name: string): string | undefined {
  if (answer.status === 'failed') return undefined;
  const { value } = answer;
  if (Array.isArray(value)) {
    const flat = value.flat() as unknown[];
    const at = flat.indexOf(name);
    return at === -1 ? undefined : String(flat[at + 1]);
  }
  const found: unknown =
    value instanceof Map
      ? value.get(name)
      : (value as Readonly<Record<string, unknown>> | null)?.[name];
  return typeof found === 'string' ? found : undefined;
}
