import { createServer } from 'node:net';

/** How far above its port a cluster node opens its bus. */
export const CLUSTER_BUS_OFFSET = 10_000;

// Below the range that outgoing connections take their ports from (from 32,768 on Linux): otherwise a client that
// reconnects while a server is down may be given the server's own port, and the restarted server finds it taken.
const LOWEST = 10_001;
const HIGHEST = 22_000;

/** A loopback port that was free a moment ago, together with the port of the cluster bus that belongs to it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS_OFFSET))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => {
      resolve(false);
    });
    probe.listen(port, '127.0.0.1', () => {
      probe.close(() => {
        resolve(true);
      });
    });
  });
}
