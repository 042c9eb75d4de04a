import { systemRuntime } from './runtime.js';
import { runCli } from './run.js';
import { processTerminal } from './terminal.js';
import { ownVersion } from './version.js';

/** Runs the program in this process, and sets its exit code. */
export async function start(): Promise<void> {
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  // ioredis prints hints there, into the picture of `watch`. What matters of them, `doctor` reports.
  Object.assign(console, { warn: () => undefined });
  // Not process.exit(): what was written may not have been read yet.
  process.exitCode = await runCli(process.argv.slice(2), {
    terminal: processTerminal(),
    runtime: systemRuntime,
    version: ownVersion,
  });
}
