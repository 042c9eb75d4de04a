import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { VALID } from './certificates.js';

/** Serves a port of this machine behind TLS. */
export async function tlsProxy(port: number): Promise<{ port: number; stop: () => void }> {
  const server = createServer(VALID, (client) => {
    const plain = connect(port, '127.0.0.1');
    for (const socket of [client, plain]) socket.on('error', () => undefined);
    client.pipe(plain).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      server.close();
    },
  };
}
