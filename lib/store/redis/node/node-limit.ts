import type { SetLimitOutcome } from '../../lock-store.js';
import { setLimitScript } from '../scripts/set-limit.js';
import type { NodeScripts } from './node-scripts.js';

/** Sets the limit of a key at one node. */
export async function setLimitAt(
  scripts: NodeScripts,
  key: string,
  limit: number | undefined,
): Promise<SetLimitOutcome> {
  const { connection, options, lineMode, slots } = scripts.parts;
  const [group] = slots.groups([key]);
  if (group === undefined) return connection.failure('error', 'no slot has the key');
  const call = setLimitScript.encode({ names: group.names[0], limit, lineMode });
  const timeLimitMs = options.nodeTimeoutMs;
  const request = { script: setLimitScript, call, timeLimitMs, whileDown: 'waits' } as const;
  const reply = await scripts.write(group.slot, request);
  scripts.doubtAfter(reply);
  if (reply.status === 'unavailable') return reply;
  const answer = setLimitScript.decode(reply.value);
  if (answer.status === 'malformed') return connection.malformed(answer);
  return reply.shortfall ?? answer;
}
