/** `node wire.mjs <port> <ms>`: passes bytes on to that port, and answers back so much later. Sends the port it listens at. */
import { connect, createServer } from 'node:net';

const [targetPort, delayMs] = process.argv.slice(2).map(Number);

/** A timer of Node is early or late by up to 1 ms, and earlier where more arrives: who sends many small pieces would wait less. */
const EXACT_BELOW_MS = 2;

/** So long nothing else is passed on, requests neither. */
const LONGEST_PAUSE_MS = 0.1;

const cell = new Int32Array(new SharedArrayBuffer(4));
/** Answers that are on their way, in their order. */
const underWay = [];

function passOn() {
  while (underWay.length > 0) {
    const [{ client, bytes, due }] = underWay;
    const leftMs = due - performance.now();
    if (leftMs > EXACT_BELOW_MS) return void setTimeout(passOn, Math.floor(leftMs - 1));
    if (leftMs > 0) {
      Atomics.wait(cell, 0, 0, Math.min(leftMs, LONGEST_PAUSE_MS));
      return void setImmediate(passOn);
    }
    underWay.shift();
    if (client.writable) client.write(bytes);
  }
}

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
  upstream.on('data', (bytes) => {
    if (underWay.length === 0) setImmediate(passOn);
    underWay.push({ client, bytes, due: performance.now() + delayMs });
  });
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
