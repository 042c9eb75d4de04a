import { LockStoreUnavailableError, redact } from 'nestjs-holdfast/tools';
import type { Context } from './command.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { exitOf, nobodyLines, noteNobody } from './nothing.js';
import type { Size } from './terminal.js';
import { printable, toJson } from './text/printable.js';
import { fitted } from './text/width.js';
import { wrapped } from './text/wrap.js';
import { intervalIn } from './values.js';

/** The alternate screen keeps what was there before; the cursor would blink about. */
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const TO_END_OF_LINE = '\x1b[K';
const TO_END_OF_SCREEN = '\x1b[J';

const CTRL_C = '\x03';

/** What was looked at, to be drawn in a window of any size. */
export interface Look {
  /** For `--json`. */
  readonly facts: unknown;
  /** Whether nothing was found. */
  readonly isEmpty: boolean;
  /** Lines that fit into this size of terminal. */
  readonly draw: (size: Size) => readonly string[];
}

/**
 * Looks repeatedly, and draws over the last picture, until the user presses q or Ctrl-C. Without a terminal it prints
 * one look, or with `--interval` one after the other.
 */
export async function live(context: Context, look: () => Promise<Look>): Promise<ExitCode> {
  const { terminal, options } = context;
  const intervalMs = intervalIn(options.interval);
  const isOnScreen = terminal.isTty && options.json !== true;
  if (!isOnScreen && options.interval === undefined) {
    if (options.json !== true)
      terminal.note(`${context.ink.dim(`Redis at ${context.target.shown}`)}\n`);
    const only = await look();
    print(context, only);
    return exitOf(context, !only.isEmpty);
  }
  const pacer = new Pacer(context, intervalMs);
  try {
    if (isOnScreen) await redraw(context, look, pacer);
    else await repeat(context, look, pacer);
  } finally {
    pacer.close();
  }
  return EXIT.ok;
}

function print({ terminal, options }: Context, { facts, draw }: Look): void {
  if (options.json === true) terminal.write(`${toJson(facts)}\n`);
  else terminal.write(`${draw({ ...terminal.size(), rows: Infinity }).join('\n')}\n`);
}

async function repeat(context: Context, look: () => Promise<Look>, pacer: Pacer): Promise<void> {
  let hasHinted = false;
  while (!pacer.hasStopped()) {
    const now = await look();
    print(context, now);
    if (now.isEmpty && !hasHinted) await noteNobody(context);
    hasHinted ||= now.isEmpty;
    await pacer.pause();
  }
}

async function redraw(context: Context, look: () => Promise<Look>, pacer: Pacer): Promise<void> {
  const { terminal, ink, target, admin } = context;
  let last: Look | undefined;
  let problem = '';
  let hint: readonly string[] = [];
  const paint = (): void => {
    const size = terminal.size();
    const head = [
      ink.dim(fitted(`Redis at ${target.shown}   q ends`, size.columns)),
      problem === '' ? '' : ink.red(fitted(problem, size.columns)),
    ];
    const rows = Math.max(1, size.rows - head.length);
    const hints = hint.flatMap((line) => wrapped(line, size.columns));
    const body = [...(last?.draw({ ...size, rows }) ?? []), ...hints].slice(0, rows);
    const lines = [...head, ...body];
    // Without a line feed behind the last line, which would scroll.
    terminal.write(
      HOME + lines.map((line) => line + TO_END_OF_LINE).join('\r\n') + TO_END_OF_SCREEN,
    );
  };
  const stopResizing = terminal.onResize(paint);
  terminal.write(ENTER);
  try {
    while (!pacer.hasStopped()) {
      try {
        last = await look();
        problem = '';
        if (!last.isEmpty) hint = [];
        // The search for services is long.
        else if (hint.length === 0 || (await admin().instances()).length > 0)
          hint = await nobodyLines(context, 'keys');
      } catch (error) {
        // An outage is no reason to stop watching: it is what is to be seen.
        if (!(error instanceof LockStoreUnavailableError)) throw error;
        problem = printable(redact(error.detail));
      }
      if (pacer.hasStopped()) break;
      paint();
      await pacer.pause();
    }
  } finally {
    stopResizing();
    terminal.write(LEAVE);
  }
}

/** The time between two looks, which ends early when the program is to end. */
class Pacer {
  readonly #context: Context;
  readonly #intervalMs: number;
  readonly #closers: readonly (() => void)[];
  #wake: () => void = () => undefined;
  #isStopped = false;

  constructor(context: Context, intervalMs: number) {
    this.#context = context;
    this.#intervalMs = intervalMs;
    const { terminal } = context;
    this.#closers = [
      terminal.onStop(this.#stop),
      terminal.onKey((key) => {
        if (key === 'q' || key === 'Q' || key === CTRL_C) this.#stop();
      }),
    ];
  }

  hasStopped(): boolean {
    return this.#isStopped;
  }

  pause(): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#context.runtime.setTimer(resolve, this.#intervalMs);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  close(): void {
    for (const close of this.#closers) close();
  }

  readonly #stop = (): void => {
    this.#isStopped = true;
    this.#wake();
  };
}
