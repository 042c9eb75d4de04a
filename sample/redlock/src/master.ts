import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Below the range that outgoing connections take their ports from, so that a port is free again for a restart. */
const PORTS = { from: 10_001, to: 22_000 };
const ATTEMPTS = 10;

/** One Redis server of this sample's own, which keeps its data in memory only: it comes back empty. */
export class Master {
  static readonly #all = new Set<Master>();
  readonly port: number;
  readonly #program: string;
  #process: ChildProcess;

  private constructor(program: string, port: number, process: ChildProcess) {
    this.#program = program;
    this.port = port;
    this.#process = process;
    Master.#all.add(this);
  }

  /** Starts one on a free port. */
  static async start(program: string): Promise<Master> {
    for (let attempt = 1; ; attempt += 1) {
      const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
      try {
        return new Master(program, port, await run(program, port));
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
      }
    }
  }

  /** For the end, whatever it is: does not wait. */
  static killAll(): void {
    for (const master of Master.#all) master.#process.kill('SIGKILL');
  }

  get name(): string {
    return `127.0.0.1:${this.port}`;
  }

  get url(): string {
    return `redis://${this.name}`;
  }

  /** Ends it as a power cut does. */
  async kill(): Promise<void> {
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
  }

  async restart(): Promise<void> {
    this.#process = await run(this.#program, this.port);
  }
}

/** Resolves when the server accepts connections, rejects with its output when it ends before. */
async function run(program: string, port: number): Promise<ChildProcess> {
  const inMemory = ['--save', '', '--appendonly', 'no'];
  const server = spawn(program, ['--port', String(port), '--bind', '127.0.0.1', ...inMemory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: server.stdout }).on('line', (line) => {
      output.push(line);
      if (line.includes('Ready to accept connections')) resolve();
    });
    server.once('error', reject);
    server.once('close', () => {
      reject(new Error([`${program} ended before it was ready`, ...output].join('\n')));
    });
  });
  return server;
}
