import type { ChannelKind, SubscriberClient } from '../../../store/redis/client/redis-client.js';
import { ok, warning, type Found } from '../finding.js';
import type { Server } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** Whether a message arrives: waiting callers are woken by one. */
export const pubSub: ServerCheck = {
  name: 'pub/sub',
  async examine(server) {
    const names = server.trialNames();
    if (!server.isClusterNode || names === undefined) {
      const problem = await tryMessages(server, 'plain', `holdfast:${server.runtime.uuid()}`);
      return [problem === undefined ? ok('A message arrives.') : without(problem)];
    }
    const problem = await tryMessages(server, 'sharded', server.shardedChannel(names));
    if (problem === undefined) return [ok('A message arrives (sharded pub/sub).')];
    const plain = await tryMessages(server, 'plain', `holdfast:${server.runtime.uuid()}`);
    if (plain !== undefined) return [without(plain)];
    return [
      warning(
        `Sharded pub/sub does not work (${problem}), so plain pub/sub is used: a process that dies while it waits costs the next one up to 1 s.`,
        'Use Redis 7 or later, and allow the Redis user +ssubscribe +spublish +pubsub|shardnumsub &holdfast:*.',
      ),
    ];
  },
};

const without = (problem: string): Found =>
  warning(
    `No message arrives (${problem}): callers that wait poll every 500 ms instead, and "show" knows no methods and no waiting callers.`,
    'Allow the Redis user +subscribe +publish +pubsub|numsub &holdfast:*, and proxies to pass pub/sub on.',
  );

/** Sends itself a message. Answers why it did not arrive. */
async function tryMessages(
  server: Server,
  kind: ChannelKind,
  channel: string,
): Promise<string | undefined> {
  const { runtime, timeLimitMs, isClusterNode } = server;
  const { client } = server.connection;
  let arrived = (): void => undefined;
  let cancel = (): void => undefined;
  const arrival = new Promise<string | undefined>((resolve) => {
    arrived = () => {
      resolve(undefined);
    };
    cancel = runtime.setTimer(() => {
      resolve(`none within ${String(timeLimitMs)} ms`);
    }, timeLimitMs);
  });
  const ignore = (): void => undefined;
  let subscriber: SubscriberClient | undefined;
  try {
    const events = { onMessage: arrived, onError: ignore, onMoved: ignore, onEnd: ignore };
    subscriber = client.openSubscriber(events, isClusterNode ? server.name : undefined);
    // Whatever hangs here is over with the time limit of the arrival.
    const listening = subscriber.connect().then(() => subscriber?.subscribe(channel, kind));
    const late = arrival.then((problem) => Promise.reject(new Error(problem)));
    late.catch(ignore);
    await Promise.race([listening, late]);
    const sent = await server.ask(kind === 'sharded' ? 'spublish' : 'publish', channel, 'doctor');
    return sent.status === 'failed' ? sent.message : await arrival;
  } catch (problem) {
    return problem instanceof Error ? problem.message : String(problem);
  } finally {
    cancel();
    subscriber?.disconnect();
  }
}
