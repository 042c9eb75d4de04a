import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { deferred } from './eventually.js';
import { sendOnce } from './own-connection.js';

/** One command as a client sent it: its name in lower case, then its arguments. */
export type SentCommand = readonly [name: string, ...args: string[]];

/** `1795323017.590761 [0 127.0.0.1:36572] "set" "key" "value"`, behind the `+` of a reply. */
const LINE = /^\+[\d.]+ \[\d+ (\S+)\] (.*)$/;

/** One command as it ran: a client sent it, or a script called it. */
interface RunCommand {
  readonly by: 'client' | 'script';
  readonly command: SentCommand;
}

/** Records the commands clients send to the server on `port` while `work` runs. */
export async function recordCommands(
  port: number,
  work: () => Promise<unknown>,
): Promise<readonly SentCommand[]> {
  const all = await recordAll(port, work);
  return all.filter(({ by }) => by === 'client').map(({ command }) => command);
}

/** A script that a client ran, and the commands that it called. */
interface RunScript {
  readonly sent: SentCommand;
  readonly called: readonly SentCommand[];
}

/** Records the scripts clients run on the server on `port` while `work` runs, each with the commands that it called. */
export async function recordScripts(
  port: number,
  work: () => Promise<unknown>,
): Promise<readonly RunScript[]> {
  const scripts: { readonly sent: SentCommand; readonly called: SentCommand[] }[] = [];
  for (const { by, command } of await recordAll(port, work))
    if (by === 'script') scripts.at(-1)?.called.push(command);
    else if (command[0].startsWith('eval')) scripts.push({ sent: command, called: [] });
  return scripts;
}

/**
 * Records all commands by MONITOR. On a socket of our own: a client of ioredis fails
 * when the first line comes in one packet with the answer to MONITOR.
 */
async function recordAll(
  port: number,
  work: () => Promise<unknown>,
): Promise<readonly RunCommand[]> {
  const commands: RunCommand[] = [];
  const mark = `end of the recording ${randomUUID()}`;
  const [begun, markSeen] = [deferred(), deferred()];
  const socket = connect(port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
  socket.on('error', begun.reject); // later, a server that dies shows in `work` and in the PING below
  createInterface({ input: socket }).on('line', (line) => {
    if (line === '+OK') begun.resolve();
    const [, source, text = ''] = LINE.exec(line) ?? [];
    if (source === undefined) return;
    const [name = '', ...args] = text.slice(1, -1).split('" "').map(unescaped);
    if (args[0] === mark) markSeen.resolve();
    else
      commands.push({
        by: source === 'lua' ? 'script' : 'client',
        command: [name.toLowerCase(), ...args],
      });
  });
  try {
    await begun.promise;
    await work();
    await sendOnce(port, ['PING', mark]);
    await markSeen.promise;
  } finally {
    socket.destroy();
  }
  return commands;
}

const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

/** Valkey 8.1 shows quotes and backslashes as they are, and other servers escape them, too. */
const unescaped = (text: string): string =>
  text.replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, byte?: string, letter = '') =>
    byte === undefined
      ? (ESCAPED[letter as string] ?? String(letter))
      : String.fromCharCode(Number.parseInt(byte, 16)),
  );
