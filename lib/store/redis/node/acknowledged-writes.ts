import type { TimeLimit } from '../../../time/time-limit.js';
import type { Unavailable } from '../../lock-store.js';
import type { WhileDown } from '../client/readiness.js';
import type { Command, CommandResult } from '../client/redis-client.js';
import { keysOf, type RedisConnection, type Reply } from '../client/redis-connection.js';
import type { Script, ScriptCall } from '../scripts/script.js';

/** How many replicas have to have a lease before it counts. */
export interface ReplicaOptions {
  readonly ack: number;
  readonly timeoutMs: number;
}

export type AcknowledgedReply = Reply & {
  /** Too few replicas have what was written, if anything was. */
  readonly shortfall?: Unavailable | undefined;
};

/** How many writes go out together: all of them wait for the slowest. */
const MOST_TOGETHER = 1_000;

/** A script to run, and how long that is worth waiting for. */
export interface WriteRequest {
  readonly script: Script;
  readonly call: ScriptCall;
  readonly timeLimitMs: number;
  readonly whileDown?: WhileDown | undefined;
}

interface Write extends WriteRequest {
  readonly limit: TimeLimit;
  readonly settle: (reply: AcknowledgedReply) => void;
}

/**
 * Runs scripts, and reports for each whether enough replicas have what it wrote. Redis' WAIT counts for the connection
 * over which it is sent, so it follows right behind the scripts. Requests that come while one is on its way are sent
 * together, under one WAIT, when it is back. On a Cluster that is so for each slot: one pipeline goes to one node.
 */
export class AcknowledgedWrites {
  readonly #connection: RedisConnection;
  readonly #options: ReplicaOptions;
  readonly #lines = new Map<number, Write[]>();

  constructor(connection: RedisConnection, options: ReplicaOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  async run(slot: number, request: WriteRequest): Promise<AcknowledgedReply> {
    let unanswered: AcknowledgedReply | undefined;
    const reply = await this.#connection.ask(
      request.timeLimitMs,
      (_, limit) =>
        new Promise<AcknowledgedReply>((resolve, reject) => {
          const settle = (outcome: AcknowledgedReply): void => {
            if (outcome.status === 'answered') {
              resolve(outcome);
              return;
            }
            // The outcome must not pass for an answer: a connection that owes one is replaced in the end.
            unanswered = outcome;
            reject(new Error('no answer'));
          };
          const write = { ...request, limit, settle };
          const line = this.#lines.get(slot);
          if (line !== undefined) line.push(write);
          else void this.#workOff(slot, [write]);
        }),
      request.whileDown,
    );
    return reply.status === 'answered' ? (reply.value as AcknowledgedReply) : (unanswered ?? reply);
  }

  /** Never rejects. */
  async #workOff(slot: number, line: Write[]): Promise<void> {
    this.#lines.set(slot, line);
    while (line.length > 0) {
      await Promise.resolve(); // what is asked for in the same moment
      // No caller waits for a request after its time. Sent then, it would arrive after its own clean-up.
      const batch = line.splice(0, MOST_TOGETHER).filter(isInTime);
      if (batch.length === 0) continue;
      const replies = await this.#send(batch);
      replies.forEach((reply, index) => batch[index]?.settle(reply));
    }
    this.#lines.delete(slot);
  }

  async #send(batch: readonly Write[]): Promise<readonly AcknowledgedReply[]> {
    const timeLimitMs = Math.max(...batch.map((write) => write.timeLimitMs));
    const all = await this.#connection.ask(timeLimitMs, () => this.#together(batch));
    if (all.status === 'unavailable') return batch.map(() => all);
    const { results, acknowledgedBy, problem } = all.value as Together;
    const { ack, timeoutMs } = this.#options;
    const shortfall =
      acknowledgedBy >= ack
        ? undefined
        : this.#connection.failure(
            'refused',
            problem ??
              `acknowledged by ${String(acknowledgedBy)} of the ${String(ack)} replicas that "replicas" asks for within ${String(timeoutMs)} ms`,
          );
    return results.map(([error, value], index) => {
      if (error === null) return { status: 'answered', value, shortfall };
      return this.#connection.failed(error, keysOf(batch[index]?.call ?? [0]));
    });
  }

  async #together(batch: readonly Write[]): Promise<Together> {
    let together = await this.#pipeline(batch, 'sha');
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const { results } = together;
      const moved = batch.find((_, index) => hasMoved(results[index]));
      // ioredis follows redirections of a pipeline only when all of its answers are the same one, and that of WAIT is not. It follows
      // that of one command, and knows the way then, unless a node that does not know yet tells it otherwise. The script does nothing,
      // because not all that is written may be written twice. ASK is an outage that passes: to follow it shows no way.
      if (moved !== undefined)
        await Promise.allSettled([
          this.#connection.client.command('eval', 'return 0', ...moved.call),
        ]);
      const isToRepeat = (write: Write, index: number): boolean =>
        (hasMoved(results[index]) || isUnknownScript(results[index])) && isInTime(write);
      const repeated = batch.filter(isToRepeat);
      if (repeated.length === 0) return together;
      const again = await this.#pipeline(repeated, 'lua');
      const answers = new Map(repeated.map((write, index) => [write, again.results[index]]));
      // The second WAIT covers what was written before the first one, too; not on another node, and then that is reported.
      together = {
        ...again,
        results: batch.map((write, index) => answers.get(write) ?? results[index] ?? NOT_RUN),
      };
    }
    return together;
  }

  async #pipeline(batch: readonly Write[], form: 'sha' | 'lua'): Promise<Together> {
    const { ack, timeoutMs } = this.#options;
    const commands: Command[] = batch.map(({ script, call }) =>
      form === 'sha' ? ['evalsha', script.sha, ...call] : ['eval', script.lua, ...call],
    );
    commands.push(['wait', ack, timeoutMs]);
    const results = await this.#connection.client.pipeline(commands);
    const [error, count] = results[batch.length] ?? NOT_RUN;
    return {
      results: results.slice(0, batch.length),
      acknowledgedBy: error === null ? Number(count) : 0,
      problem: error?.message,
    };
  }
}

const NOT_RUN: CommandResult = [new Error('the pipeline was not run'), undefined];

/** At most how often a request is sent whose slot has moved, or whose script the server did not know. */
const MOST_TRIES = 4;

interface Together {
  readonly results: readonly CommandResult[];
  readonly acknowledgedBy: number;
  /** Why WAIT failed, if it did. */
  readonly problem: string | undefined;
}

const isInTime = ({ limit }: Write): boolean => !limit.isOver;

const hasMoved = (result: CommandResult | undefined): boolean =>
  result?.[0]?.message.startsWith('MOVED ') === true;

const isUnknownScript = (result: CommandResult | undefined): boolean =>
  result?.[0]?.message.startsWith('NOSCRIPT') === true;
