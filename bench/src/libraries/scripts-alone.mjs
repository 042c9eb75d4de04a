import { randomUUID } from 'node:crypto';
import { acquireScript } from '../../../build/store/redis/scripts/acquire.js';
import { keyNames } from '../../../build/store/redis/scripts/key-names.js';
import { releaseScript } from '../../../build/store/redis/scripts/release.js';
import { connect } from '../support/clients.mjs';

/**
 * The two scripts of Holdfast, sent by ioredis, and nothing else of it: what is left is what Redis and ioredis need for them.
 * Of several servers a majority is waited for.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls) {
  const { clients, close } = await connect(urls);
  const namesOf = keyNames('scripts:');
  for (const { lua } of [acquireScript, releaseScript])
    await Promise.all(clients.map((redis) => redis.script('LOAD', lua)));
  const [redis, ...others] = clients;
  const most = Math.floor(clients.length / 2) + 1;
  const run = ({ sha }, call) =>
    others.length === 0
      ? redis.evalsha(sha, ...call)
      : majority(
          most,
          clients.map((client) => client.evalsha(sha, ...call)),
        );
  const several = others.length > 0 && { lineMode: 'quorum' };
  return {
    async acquire(key, { ttl }) {
      const server = {
        names: namesOf,
        lineMode: 'standalone',
        options: { fenceKeepMs: 86_400_000, turns: 1_024 },
        ...several,
      };
      const lease = { keys: [key], token: `holdfast:${randomUUID()}`, member: '' };
      const asked = { ...lease, ttlMs: ttl, turns: 1_024, proposal: 0 };
      const reply = await run(acquireScript, acquireScript.encode(asked, server));
      const answer = acquireScript.decode(reply, asked, server);
      if (answer?.status !== 'granted') throw new Error(`${key} is held`);
      const done = { ...lease, lastToken: answer.fencingToken };
      return () => run(releaseScript, releaseScript.encode(done, server));
    },
    close,
  };
}

/** A reply, as soon as so many are there. No other caller wants the key, so each of them is a grant. */
const majority = (most, replies) =>
  new Promise((resolve, reject) => {
    let count = 0;
    for (const reply of replies)
      reply.then((value) => {
        count += 1;
        if (count === most) resolve(value);
      }, reject);
  });
