import { REQUEST } from '../../../observe/channels.js';
import type { RequestContext } from '../../../observe/contexts.js';
import { traced } from '../../../observe/traced.js';
import type { Clock } from '../../../time/clock.js';
import type { Reply } from './redis-connection.js';

interface Request {
  /** What the script does. */
  readonly operation: string;
  /** `host:port` */
  readonly node: string;
}

/** Publishes a request on `holdfast:request`. */
export function tracedRequest(
  { operation, node }: Request,
  clock: Clock,
  run: () => Promise<Reply>,
): Promise<Reply> {
  const context: RequestContext = { operation, node };
  const since = clock.now().monotonicMs;
  return traced(REQUEST, context, async () => {
    const reply = await run();
    context.durationMs = clock.now().monotonicMs - since;
    context.outcome =
      reply.status === 'answered' ? 'answered' : (reply.nodes[0]?.kind ?? 'connection');
    return reply;
  });
}
