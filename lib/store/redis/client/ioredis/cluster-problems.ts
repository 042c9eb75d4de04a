import type { Cluster, Redis } from 'ioredis';
import { connectProblem, WRONG_HOST, type ConnectError } from '../connect-problem.js';

/** ioredis connects to the addresses that host names of a Cluster resolve to. */
const HOST_OF_A_CLUSTER =
  'give the Cluster client "dnsLookup: (address, callback) => callback(null, address)" to connect to the host names of the TLS certificate, ' +
  'or "tls: { servername }" in its "redisOptions"';

/** The same of a Cluster: ioredis asks its nodes for their slots over connections whose errors it drops. */
export class ClusterProblems {
  #last: ConnectError | undefined;

  /** @param cluster not connected yet */
  constructor(cluster: Cluster) {
    cluster.on('+node', (node: Redis) => {
      const duplicate = node.duplicate.bind(node);
      node.duplicate = (options) => {
        const copy = duplicate(options);
        copy.on('error', (error: ConnectError) => {
          this.#last = error;
        });
        return copy;
      };
    });
    cluster.on('ready', () => {
      this.#last = undefined;
    });
  }

  problemOf({ message, lastNodeError }: ConnectError): string {
    if (!lastNodeError) return message;
    const cause =
      lastNodeError.message === 'Connection is closed.'
        ? (this.#last ?? lastNodeError)
        : lastNodeError;
    const problem = WRONG_HOST.test(cause.code ?? '')
      ? `${cause.message.trim()} (${HOST_OF_A_CLUSTER})`
      : connectProblem(cause);
    return `${message} ${problem}`;
  }
}
