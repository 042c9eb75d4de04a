import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

// Reads one line from this process. A line means that the server has ended; the end of the pipe, that we have.
const SCRIPT = 'read -r line || { kill -9 "$1"; rm -rf "$2"; }';

/**
 * Kills process `pid` and removes `folder` when this process ends before it, even by SIGKILL. It takes a small
 * process beside it: jest gives tests a copy of `process` whose `exit` event never fires.
 */
export function guardAgainstOrphans(pid: number, folder: string, exited: Promise<void>): void {
  const guard = spawn('sh', ['-c', SCRIPT, 'redis-orphan-guard', String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // so that Ctrl-C in the terminal does not end the guard before its work
  });
  guard.unref();
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  (guard.stdin as unknown as Socket).unref();
  void exited.then(() => guard.stdin.end('ended\n'));
}
