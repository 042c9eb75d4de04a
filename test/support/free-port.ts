import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How far above its port a cluster node opens its bus. */
export const CLUSTER_BUS_OFFSET = 10_000;

// Below the range that outgoing connections take their ports from (from 32,768 on Linux): otherwise a client that
// reconnects while a server is down may be given the server's own port, and the restarted server finds it taken.
const LOWEST = 10_001;
const HIGHEST = 22_000;

/** A file for each port, with the id of the process that took it, for all tests on this machine. */
const TAKEN = join(tmpdir(), 'holdfast-ports');

/**
 * A loopback port that was free a moment ago, together with the port of the cluster bus that belongs to it. No other test is given it for as
 * long as this process lives: a server that is down for a while must not be taken for that of somebody else.
 */
export async function freePort(): Promise<number> {
  mkdirSync(TAKEN, { recursive: true });
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (take(port) && (await isFree(port)) && (await isFree(port + CLUSTER_BUS_OFFSET)))
      return port;
  }
}

function take(port: number): boolean {
  const file = join(TAKEN, String(port));
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    if (!isOver(file)) return false;
    // The next process may have it.
    rmSync(file, { force: true });
    return false;
  }
}

/** Whether the process that took it has ended. */
function isOver(file: string): boolean {
  try {
    const owner = Number(readFileSync(file, 'utf8'));
    if (owner > 0) process.kill(owner, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
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
