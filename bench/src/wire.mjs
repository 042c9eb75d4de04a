/** `node wire.mjs <port> <ms>`: passes bytes on to that port, and answers back so much later. Sends the port it listens at. */
import { connect, createServer } from 'node:net';

const [targetPort, delayMs] = process.argv.slice(2).map(Number);

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ host: '127.0.0.1', port: targetPort, noDelay: true });
  for (const socket of [client, upstream]) {
    socket.on('error', () => undefined);
    socket.once('close', () => {
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
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
