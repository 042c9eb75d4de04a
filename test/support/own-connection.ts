import { Redis } from 'ioredis';

/** What the tests' own commands can be made of. */
export type CommandPart = string | number;

/** A client for one errand: it sends nothing by itself, does not reconnect and fails at once. */
export function ownConnection(port: number): Redis {
  const client = new Redis({
    port,
    host: '127.0.0.1',
    protocol: 2, // RESP3 begins with HELLO, which would show in the command statistics
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  client.on('error', () => undefined); // the command rejects as well
  return client;
}

/** Sends one command on a connection of its own and closes it. */
export async function sendOnce(
  port: number,
  [name, ...args]: readonly CommandPart[],
): Promise<unknown> {
  const client = ownConnection(port);
  try {
    await client.connect();
    return await client.call(String(name), args.map(String));
  } finally {
    client.disconnect();
  }
}
