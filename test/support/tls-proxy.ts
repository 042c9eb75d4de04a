import { connect, type AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { createServer, type TlsOptions } from 'node:tls';
import { VALID } from './certificates.js';

/** Serves a port of this machine behind TLS. */
export async function tlsProxy(
  port: number,
  options: TlsOptions = VALID,
): Promise<{ port: number; stop: () => void }> {
  const server = createServer(options, (client) => {
    const plain = connect(port, '127.0.0.1');
    // `pipe` would leave the one open where the other is reset.
    pipeline(client, plain, client, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      server.close();
    },
  };
}
