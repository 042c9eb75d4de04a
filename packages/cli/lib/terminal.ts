/** How large the window is, in cells. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** What the program reads and writes: the process has one, and tests give one of their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether results go to a terminal and not to a file or a pipe. */
  readonly isTty: boolean;
  /** Whether a user can be asked. */
  readonly canAsk: boolean;
  /** `Infinity` columns where nothing has to fit. */
  size(): Size;
  /** Results. */
  write(text: string): void;
  /** Everything else, so that a pipe gets results only. */
  note(text: string): void;
  ask(question: string): Promise<string>;
  /** Calls back for each key that is pressed, without waiting for Enter. Returns what ends it. */
  onKey(listener: (key: string) => void): () => void;
  onResize(listener: () => void): () => void;
  /** Calls back when the program is to end: by Ctrl-C, by a signal, or because its output is closed. */
  onStop(listener: () => void): () => void;
}

const DEFAULT: Size = { columns: 80, rows: 24 };

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr, env } = process;
  return {
    env,
    isTty: stdout.isTTY,
    canAsk: stdin.isTTY && stderr.isTTY,
    size: () =>
      stdout.isTTY
        ? // Some terminals tell no size, and say 0.
          { columns: stdout.columns || DEFAULT.columns, rows: stdout.rows || DEFAULT.rows }
        : { columns: Number(env.COLUMNS) || Infinity, rows: Infinity },
    write: (text) => void stdout.write(text),
    note: (text) => void stderr.write(text),
    ask: async (question) => {
      const { createInterface } = await import('node:readline/promises');
      const lines = createInterface({ input: stdin, output: stderr });
      try {
        // Ctrl-D and Ctrl-C are answers, too.
        const ended = new Promise<string>((resolve) => {
          lines.once('close', () => {
            resolve('');
          });
        });
        return await Promise.race([lines.question(question), ended]);
      } finally {
        lines.close();
      }
    },
    onKey: (listener) => {
      if (!stdin.isTTY) return () => undefined;
      const hear = (bytes: Buffer): void => {
        listener(bytes.toString());
      };
      stdin.setRawMode(true).on('data', hear).resume();
      return () => {
        stdin.off('data', hear).setRawMode(false).pause();
      };
    },
    onResize: (listener) => {
      stdout.on('resize', listener);
      return () => void stdout.off('resize', listener);
    },
    onStop: (listener) => {
      for (const signal of SIGNALS) process.once(signal, listener);
      stdout.once('error', listener);
      return () => {
        for (const signal of SIGNALS) process.off(signal, listener);
        stdout.off('error', listener);
      };
    },
  };
}
