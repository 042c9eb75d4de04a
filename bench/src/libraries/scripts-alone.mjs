import { randomUUID } from 'node:crypto';
import { acquireScript } from '../../../build/store/redis/scripts/acquire.js';
import { keyNames } from '../../../build/store/redis/scripts/key-names.js';
import { releaseScript } from '../../../build/store/redis/scripts/release.js';
import { connect } from '../support/clients.mjs';

/**
 * The two scripts of Holdfast, sent by ioredis, and nothing else of it: what is left is what Redis and ioredis need for them.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls) {
  const { clients, close } = await connect(urls);
  const [redis] = clients;
  const namesOf = keyNames('scripts:');
  for (const { lua } of [acquireScript, releaseScript]) await redis.script('LOAD', lua);
  const run = ({ sha }, call) => redis.evalsha(sha, ...call);
  return {
    async acquire(key, { ttl }) {
      const held = {
        names: [namesOf(key)],
        token: `holdfast:${randomUUID()}`,
        lineMode: 'standalone',
        member: '',
      };
      const asked = { ...held, ttlMs: ttl, fenceKeepMs: 86_400_000, turns: 1_024, proposal: 0 };
      const reply = await run(acquireScript, acquireScript.encode(asked));
      const answer = acquireScript.decode(reply);
      if (answer.status !== 'granted') throw new Error(`${key} is held`);
      const done = { ...held, lastToken: answer.fencingToken, holdMs: 0 };
      return () => run(releaseScript, releaseScript.encode(done));
    },
    close,
  };
}
