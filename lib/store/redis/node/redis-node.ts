import type { ReleaseListener } from '../../lock-store.js';
import { NodeAdmin } from './node-admin.js';
import { NodeLooks } from './node-looks.js';
import { Server } from './server.js';

/**
 * One of the places that vote on a lock: a standalone Redis, one behind Sentinel, or a Cluster, which takes several
 * keys slot by slot. It reports the vote of this one place, and knows nothing of majorities.
 */
export class RedisNode extends Server {
  override readonly looks: NodeLooks = new NodeLooks(this);
  /** What it tells operators. */
  readonly admin = new NodeAdmin(this);
  /** Called with messages from other processes that call no waiter in line. */
  onMessage: ((text: string) => void) | undefined;

  get isThere(): boolean {
    return this.connection.isThere;
  }

  /** The node is reachable, and nothing is known that keeps it from granting locks. */
  get isWell(): boolean {
    return this.isThere && this.watch.isWell;
  }

  /** The node is reachable, and grants no locks yet, because it may have forgotten leases. */
  get isQuarantined(): boolean {
    return this.isThere && this.watch.isQuarantined;
  }

  /** The node owes an answer whose time is up. */
  get isSilent(): boolean {
    return this.connection.isSilent;
  }

  /** Whether releases are reported from now on. */
  listen(onCall: ReleaseListener, onDeaf: () => void): Promise<boolean> {
    return this.inbox.open((message) => {
      if (message === undefined) onCall();
      else if (message.startsWith('{')) this.onMessage?.(message);
      else {
        const [, to, inMs, name] = CALL.exec(message) ?? [];
        if (to !== undefined && name?.startsWith(this.prefix) === true)
          onCall(name.slice(this.prefix.length), { to, inMs: Number(inMs) });
      }
    }, onDeaf);
  }
}

/** What scripts send to those in line (`notify` in `scripts/places.ts`): `<tail of the token, or id> <ms> <main key>`. */
const CALL = /^(\S+) (\d+) (.*)$/s;
