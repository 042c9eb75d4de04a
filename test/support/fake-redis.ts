import type {
  ClientEvents,
  ClientState,
  Command,
  CommandResult,
  RedisClient,
  RedisSource,
  SubscriberClient,
  SubscriberEvents,
} from '../../lib/store/redis/client/redis-client.js';
import { replyError } from '../../lib/store/redis/client/reply-errors.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { give, take } from '../../lib/store/redis/scripts/plain.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { Script, ScriptCall } from '../../lib/store/redis/scripts/script.js';
import type { Runtime } from '../../lib/time/runtime.js';

/** The answer to this never comes. */
export const LOST = Symbol('lost');

/** What the server says to a command. An error is an answer that is one. */
export type Answer = (name: string, args: readonly (string | number)[]) => unknown;

/** How long the fake waits before it tries to connect again, in ms. */
export const RETRY_MS = 100;

/** A Redis that answers from a function, as late as the test says, over connections that the test cuts. */
export class FakeRedis implements RedisSource {
  readonly name: string;
  readonly keyPrefix = '';
  readonly isCluster = false;
  readonly database = 0;
  readonly runtime: Runtime;
  /** Every command that has arrived. */
  readonly received: Command[] = [];
  readonly subscribers = new Set<FakeSubscriber>();
  isUp = true;
  /** Connections come about, and the server says nothing over them: they are not ready. */
  isSilent = false;
  delayMs = 0;
  answer: Answer;
  /** How often somebody has connected for commands. */
  connections = 0;
  readonly #clients = new Set<FakeClient>();

  constructor(runtime: Runtime, name = 'fake:6379') {
    this.name = name;
    this.runtime = runtime;
    this.answer = grants(runtime);
  }

  connect(events: ClientEvents): RedisClient {
    const client = new FakeClient(this, events);
    this.#clients.add(client);
    return client;
  }

  redact(text: string): string {
    return text;
  }

  /** Answers one command, and all others as before. */
  answerTo(name: string, answer: (...args: readonly (string | number)[]) => unknown): void {
    const before = this.answer;
    this.answer = (each, args) =>
      each === name || args[0] === name ? answer(...args) : before(each, args);
  }

  /** Of several requests in one call, the answers to each. An error of one is that of the call. */
  answerOf(name: string, args: readonly (string | number)[]): unknown {
    const script = args[0];
    const parts = script === take.sha ? [4, 4] : script === give.sha ? [2, 1] : undefined;
    if (parts === undefined) return this.answer(name, args);
    const answers = callsIn(args, parts).map((call) =>
      this.answer(name, [script as string, ...call]),
    );
    const failure = answers.find((answer) => answer === LOST || answer instanceof Error);
    return failure ?? (answers.length === 1 ? answers[0] : answers);
  }

  /** Nothing is plain from here on: the whole scripts are asked. */
  refusePlain(): void {
    for (const { sha } of [take, give]) this.answerTo(sha, () => 0);
  }

  /** All connections break; whether new ones come about says `isUp`. */
  cut(): void {
    for (const client of this.#clients) client.cut();
    for (const subscriber of [...this.subscribers]) subscriber.cut();
  }

  /** To everybody who listens, after the time that a message takes. */
  publish(channel: string, message: string): void {
    for (const subscriber of this.subscribers) subscriber.hear(channel, message);
  }

  countOf(script: Script): number {
    return this.received.filter(([, what]) => what === script.sha || what === script.lua).length;
  }
}

/** The calls that several requests would have been, each with so many keys and arguments. */
function callsIn(
  [, keyCount, ...rest]: readonly (string | number)[],
  [keys = 0, args = 0]: readonly number[],
): readonly ScriptCall[] {
  const count = Number(keyCount) / keys;
  return Array.from({ length: count }, (_, index) => {
    const argsAt = count * keys + index * args;
    return [
      keys,
      ...rest.slice(index * keys, (index + 1) * keys),
      ...rest.slice(argsAt, argsAt + args),
    ];
  });
}

/** Grants, renews and releases whatever it is asked for. */
function grants(runtime: Runtime): Answer {
  return (name, [script, keyCount = 0]) => {
    const nowUs = Math.round(runtime.now().wallMs * 1_000);
    if (name === 'publish') return 1;
    if (name === 'pubsub') return ['channel', 1];
    if (name === 'info') return '';
    if (name === 'eval' || name === 'time')
      return [String(Math.floor(nowUs / 1e6)), String(nowUs % 1e6)];
    const keys = Number(keyCount) / 5;
    if (script === take.sha) return nowUs;
    if (script === give.sha) return 1;
    if (script === acquireScript.sha) return [1, nowUs, nowUs, 0];
    if (script === releaseScript.sha) return keys;
    if (script === raiseFenceScript.sha) return Number(keyCount) / 4;
    if (script === extendScript.sha) return [nowUs, ...Array.from({ length: keys }, () => [1])];
    return name === 'del' ? 1 : null;
  };
}

class FakeClient implements RedisClient {
  readonly kind = 'single';
  readonly hasShardedChannels = false;
  state: ClientState = 'idle';
  readonly #server: FakeRedis;
  readonly #events: ClientEvents;
  readonly #pending = new Set<(error: Error) => void>();
  #cancelRetry: () => void = () => undefined;
  #isConnected = false;

  constructor(server: FakeRedis, events: ClientEvents) {
    this.#server = server;
    this.#events = events;
  }

  connect(): void {
    this.state = 'connecting';
    this.#connectIn(this.#server.delayMs);
  }

  evalsha(sha: string, call: ScriptCall): Promise<unknown> {
    return this.command('evalsha', sha, ...call);
  }

  command(...[name, ...args]: Command): Promise<unknown> {
    if (this.state !== 'ready') return Promise.reject(new Error('not connected'));
    this.#server.received.push([name, ...args]);
    const answer = this.#server.answerOf(name, args);
    return new Promise((resolve, reject) => {
      this.#pending.add(reject);
      if (answer === LOST) return;
      this.#server.runtime.setTimer(() => {
        if (!this.#pending.delete(reject)) return;
        if (answer instanceof Error) reject(replyError(answer.message));
        else resolve(answer);
      }, this.#server.delayMs);
    });
  }

  pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    return Promise.all(
      commands.map((command) =>
        this.command(...command).then(
          (value) => [null, value] as const,
          (error: unknown) => [error as Error, undefined] as const,
        ),
      ),
    );
  }

  keysIn([, key]: Command): readonly string[] {
    return [String(key)];
  }

  openSubscriber(events: SubscriberEvents): SubscriberClient {
    return new FakeSubscriber(this.#server, events);
  }

  masters(): readonly [] {
    return [];
  }

  ownerOf(): undefined {
    return undefined;
  }

  refreshSlots(): void {
    // No Cluster.
  }

  reconnect(): void {
    this.cut();
  }

  disconnect(): void {
    this.#cancelRetry();
    this.state = 'ended';
    this.#fail();
    this.#events.onClose();
    this.#events.onEnd();
  }

  cut(): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    this.state = 'connecting';
    this.#fail();
    this.#events.onClose();
    this.#connectIn(RETRY_MS);
  }

  #fail(): void {
    for (const reject of this.#pending) reject(new Error('the connection closed'));
    this.#pending.clear();
  }

  #connectIn(ms: number): void {
    this.#cancelRetry = this.#server.runtime.setTimer(() => {
      if (this.#server.isUp) {
        this.#isConnected = true;
        this.#events.onConnect();
        if (this.#server.isSilent) return;
        this.state = 'ready';
        this.#server.connections += 1;
        this.#events.onReady();
        return;
      }
      this.#events.onError('connect ECONNREFUSED');
      this.#events.onClose();
      this.#connectIn(RETRY_MS);
    }, ms);
  }
}

class FakeSubscriber implements SubscriberClient {
  isReady = false;
  readonly #server: FakeRedis;
  readonly #events: SubscriberEvents;
  readonly #channels = new Set<string>();

  constructor(server: FakeRedis, events: SubscriberEvents) {
    this.#server = server;
    this.#events = events;
  }

  async connect(): Promise<void> {
    if (!this.#server.isUp) throw new Error('connect ECONNREFUSED');
    this.isReady = true;
    this.#server.subscribers.add(this);
  }

  async subscribe(channel: string): Promise<void> {
    this.#channels.add(channel);
  }

  async ping(): Promise<void> {
    if (!this.isReady) throw new Error('not connected');
  }

  disconnect(): void {
    this.cut();
  }

  hear(channel: string, message: string): void {
    if (this.#channels.has(channel)) this.#events.onMessage(message);
  }

  get channels(): readonly string[] {
    return [...this.#channels];
  }

  cut(): void {
    this.#server.subscribers.delete(this);
    if (!this.isReady) return;
    this.isReady = false;
    this.#events.onEnd();
  }
}
