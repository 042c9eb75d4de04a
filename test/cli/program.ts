import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { compiledFile } from '../support/compiled.js';
import { runCli } from '../../packages/cli/lib/run.js';
import type { ExitCode } from '../../packages/cli/lib/exit-codes.js';
import type { Size, Terminal } from '../../packages/cli/lib/terminal.js';
import { systemRuntime } from '../../lib/time/runtime.js';

/** What became of a run of the program. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const MAIN = new URL('../../packages/cli/lib/main.ts', import.meta.url);

/** The program in a process of its own, as users start it. */
export function spawnProgram(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcessWithoutNullStreams {
  const { REDIS_URL: _, COLUMNS: __, npm_command: ___, ...inherited } = process.env;
  return spawn(process.execPath, [compiledFile(MAIN), ...args], {
    env: { ...inherited, NODE_OPTIONS: '', ...env },
  });
}

/** Resolves when it has ended. */
export async function program(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const child = spawnProgram(args, env);
  child.stdin.end();
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** A terminal without a window. */
export class FakeTerminal implements Terminal {
  env: Readonly<Record<string, string | undefined>> = {};
  isTty = false;
  canAsk = false;
  window: Size = { columns: Infinity, rows: Infinity };
  answers: string[] = [];
  readonly questions: string[] = [];
  stdout = '';
  stderr = '';
  /** Called with all that was written, each time. */
  onWrite: (stdout: string) => void = () => undefined;
  readonly #keys = new Set<(key: string) => void>();
  readonly #resizes = new Set<() => void>();
  readonly #stops = new Set<() => void>();

  /** How many listeners it has. */
  get listeners(): number {
    return this.#keys.size + this.#resizes.size + this.#stops.size;
  }

  size(): Size {
    return this.window;
  }

  write(text: string): void {
    this.stdout += text;
    this.onWrite(this.stdout);
  }

  note(text: string): void {
    this.stderr += text;
  }

  async ask(question: string): Promise<string> {
    this.questions.push(question);
    return this.answers.shift() ?? '';
  }

  onKey(listener: (key: string) => void): () => void {
    this.#keys.add(listener);
    return () => void this.#keys.delete(listener);
  }

  onResize(listener: () => void): () => void {
    this.#resizes.add(listener);
    return () => void this.#resizes.delete(listener);
  }

  onStop(listener: () => void): () => void {
    this.#stops.add(listener);
    return () => void this.#stops.delete(listener);
  }

  press(key: string): void {
    for (const listener of this.#keys) listener(key);
  }

  resize(window: Size): void {
    this.window = window;
    for (const listener of this.#resizes) listener();
  }

  stop(): void {
    for (const listener of this.#stops) listener();
  }
}

/** The program in this process: quicker, and with a terminal that the test looks at. */
export const runIn = (terminal: FakeTerminal, ...args: readonly string[]): Promise<ExitCode> =>
  runCli(args, { terminal, runtime: systemRuntime, version: () => '1.2.3' });

/** The same, with what it printed. */
export async function run(
  args: readonly string[],
  settings: Partial<Pick<FakeTerminal, 'env' | 'isTty' | 'canAsk' | 'window' | 'answers'>> = {},
): Promise<Outcome & { readonly terminal: FakeTerminal }> {
  const terminal = Object.assign(new FakeTerminal(), settings);
  const code = await runIn(terminal, ...args);
  return { code, stdout: terminal.stdout, stderr: terminal.stderr, terminal };
}

/** As a shell reads a line without variables. */
export const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
