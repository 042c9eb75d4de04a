/** An error of a connection. */
export type ConnectError = Error & {
  /** The code of Node or OpenSSL. */
  readonly code?: string;
  /** What went wrong with each address of a host name that has several. Node gives no message then. */
  readonly errors?: readonly Error[];
  /** What the last node said, if no node of a Cluster can be asked. */
  readonly lastNodeError?: ConnectError | null;
};

export const WRONG_HOST = /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/;

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

/** What went wrong with a connection, and what to do about it where that is known. */
export function connectProblem({ message, code = '', errors = [] }: ConnectError): string {
  const [, remedy] = REMEDIES.find(([of]) => of.test(code)) ?? [];
  const [first] = errors;
  const problem = message.trim() || (first?.message ?? code);
  return problem + (remedy === undefined ? '' : ` (${remedy})`);
}

/** What OpenSSL and Node say when the other side does not speak TLS, or ends the connection at its first words. */
const NO_TLS =
  /wrong version number|packet length too long|before secure TLS connection|^read ECONNRESET/;

/** What becomes of a plain connection to a port that expects TLS: it is closed, or the alert is read as an answer. */
const CLOSED = /ECONNRESET|EPIPE|Protocol error|RESP type 21|closed unexpectedly|Unknown RESP/;

/**
 * Why a connection that was never usable is not, where `redis://` and `rediss://` are likely to be mistaken for each other. Begins with a
 * space, or is empty.
 *
 * @param isShakingHands the connection stands, and the other side has not begun with TLS
 */
export function tlsHint(usesTls: boolean, problem: string, isShakingHands = false): string {
  // The other side speaks TLS, and one of the two does not accept the certificate of the other one.
  if (problem.includes('certificate')) return '';
  if (usesTls)
    return isShakingHands || NO_TLS.test(problem)
      ? ' (the port accepts connections, but not TLS: if it has no TLS, write redis:// instead of rediss://)'
      : '';
  return CLOSED.test(problem)
    ? ' (a port that expects TLS closes plain connections: if it is one, write rediss:// and not redis://)'
    : '';
}
