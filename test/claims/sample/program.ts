import { type ChildProcess, spawn } from 'node:child_process';
import { compiledProject } from '../../support/compiled.js';
import { until } from '../../support/eventually.js';

/** How a program ended: one of the two is set. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program of this project in a process of its own, as it was compiled from its present sources. */
export class Program {
  /** Resolves when the process has ended and all of its output has been read. */
  readonly ended: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();
  #output = '';

  /** `env` is added to that of the tests; what is `undefined` there is left out. */
  constructor(script: string, env: Readonly<Record<string, string | undefined>>) {
    this.#child = spawn(process.execPath, [script.replace(/\.ts$/, '.js')], {
      cwd: compiledProject(),
      env: { ...process.env, NODE_OPTIONS: undefined, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.ended = until(this.#child, 'close').then(([code, signal]) => ({ code, signal }) as Exit);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
        for (const look of this.#waiting) look();
      });
    }
  }

  get output(): string {
    return this.#output;
  }

  /** Resolves once the output has a match; rejects with the output when the program ends without one. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    let look = (): void => undefined;
    const found = new Promise<RegExpExecArray>((resolve) => {
      look = () => {
        const match = pattern.exec(this.#output);
        if (match) resolve(match);
      };
    });
    this.#waiting.add(look);
    look();
    const failed = this.ended.then(({ code, signal }) => {
      throw new Error(
        `It ended (${String(code ?? signal)}) and did not say ${String(pattern)}:\n${this.#output}`,
      );
    });
    return Promise.race([found, failed]).finally(() => this.#waiting.delete(look));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it, in whatever state it is. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended;
  }
}
