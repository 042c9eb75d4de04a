import { connect, createServer } from 'node:net';

/** A way to a server on this machine on which each answer takes `delayMs` longer. Latency, not a limit of throughput. */
export async function startSlowWire(targetPort, delayMs) {
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port: targetPort, noDelay: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (bytes) => upstream.write(bytes));
    // Timers of one length fire in the order in which they were set.
    upstream.on('data', (bytes) => {
      setTimeout(() => {
        if (client.writable) client.write(bytes);
      }, delayMs);
    });
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `redis://127.0.0.1:${server.address().port}`,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
