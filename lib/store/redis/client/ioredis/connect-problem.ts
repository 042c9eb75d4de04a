import { TLSSocket } from 'node:tls';
import type { Cluster, Redis } from 'ioredis';

/** An error of a connection. */
type ConnectError = Error & {
  /** The code of Node or OpenSSL. */
  readonly code?: string;
  /** What the last node said, if no node of a Cluster can be asked. */
  readonly lastNodeError?: ConnectError | null;
};

const WRONG_HOST = /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/;

/** What to do about errors with these codes. */
const REMEDIES: readonly (readonly [code: RegExp, remedy: string])[] = [
  [
    /^(UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|CERT_UNTRUSTED)$/,
    'the TLS certificate is not trusted: name the file of its authority in NODE_EXTRA_CA_CERTS, or give "tls: { ca }" in option "redis"',
  ],
  [
    /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/,
    'renew the TLS certificate of the server, or set the clock of this machine',
  ],
  [
    WRONG_HOST,
    'connect to a host name of the TLS certificate, or give one as "tls: { servername }" in option "redis"',
  ],
  [
    /^ERR_SSL_\w*CERTIFICATE_REQUIRED$/,
    'the server asks for a TLS certificate of the client: give "tls: { cert, key }" in option "redis"',
  ],
];

/** ioredis connects to the addresses that host names of a Cluster resolve to. */
const HOST_OF_A_CLUSTER =
  'give the Cluster client "dnsLookup: (address, callback) => callback(null, address)" to connect to the host names of the TLS certificate, ' +
  'or "tls: { servername }" in its "redisOptions"';

/** What went wrong with a connection, and what to do about it where that is known. */
export function connectProblem({ message, code = '' }: ConnectError): string {
  const [, remedy] = REMEDIES.find(([of]) => of.test(code)) ?? [];
  return message.trim() + (remedy === undefined ? '' : ` (${remedy})`);
}

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

/** What OpenSSL and Node say when the other side does not speak TLS. */
const NO_TLS = /wrong version number|packet length too long|before secure TLS connection/;

/** What becomes of a plain connection to a port that expects TLS: it is closed, or the alert is read as an answer. */
const CLOSED = /ECONNRESET|EPIPE|Protocol error|RESP type 21/;

/**
 * Why a connection that was never usable is not, where `redis://` and `rediss://` are likely to be mistaken for each other. Begins with a
 * space, or is empty.
 */
export function tlsHint({ options, stream }: Redis, problem: string): string {
  // The other side speaks TLS, and one of the two does not accept the certificate of the other one.
  if (problem.includes('certificate')) return '';
  if (options.tls !== undefined) {
    const isShakingHands = stream instanceof TLSSocket && isPending(stream);
    return isShakingHands || NO_TLS.test(problem)
      ? ' (the port accepts connections, but not TLS: if it has no TLS, write redis:// instead of rediss://)'
      : '';
  }
  return CLOSED.test(problem)
    ? ' (a port that expects TLS closes plain connections: if it is one, write rediss:// and not redis://)'
    : '';
}

/** Connected, with the handshake not over: Node knows, and does not document it. */
const isPending = (socket: TLSSocket): boolean =>
  !socket.connecting &&
  (socket as { readonly secureConnecting?: boolean }).secureConnecting === true;
