import { TLSSocket } from 'node:tls';
import type { Redis } from 'ioredis';

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
