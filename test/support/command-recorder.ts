import { randomUUID } from 'node:crypto';
import { ownConnection, sendOnce } from './own-connection.js';

/** One command as a client sent it: its name in lower case, then its arguments. */
export type SentCommand = readonly [name: string, ...args: string[]];

/** Records the commands clients send to the server on `port` while `work` runs, by MONITOR. */
export async function recordCommands(
  port: number,
  work: () => Promise<unknown>,
): Promise<readonly SentCommand[]> {
  const client = ownConnection(port);
  const commands: SentCommand[] = [];
  const mark = `end of the recording ${randomUUID()}`;
  try {
    const monitor = await client.monitor();
    monitor.on('error', () => undefined); // a server that dies shows in `work` and in the PING below
    const markSeen = new Promise<void>((resolve) => {
      monitor.on('monitor', (_time: string, [name = '', ...args]: string[], source: string) => {
        if (args[0] === mark) resolve();
        else if (source !== 'lua') commands.push([name.toLowerCase(), ...args]);
      });
    });
    try {
      await work();
      await sendOnce(port, ['PING', mark]);
      await markSeen;
    } finally {
      monitor.disconnect();
    }
  } finally {
    client.disconnect();
  }
  return commands;
}
