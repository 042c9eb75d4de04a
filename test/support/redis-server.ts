import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CommandStats,
  countCommands,
  parseCommandStats,
  subtractCommandStats,
  sumCommandStats,
} from './command-stats.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { recordCommands, type SentCommand } from './command-recorder.js';
import { type CommandPart, sendOnce } from './own-connection.js';
import { PortTakenError, RedisProcess, writeConfig, type RedisRun } from './redis-process.js';

const PORT_ATTEMPTS = 10;

/** How to start a server. */
export interface RedisServerOptions {
  /** Default: a free port, never 6379. */
  readonly port?: number;
  /** Lines of `redis.conf`, name to value; they come after the defaults and win. */
  readonly config?: Readonly<Record<string, string>>;
  /** Start as a replica of this server, and resolve once the replica has its data. */
  readonly replicaOf?: { readonly port: number };
  /** Start as a sentinel; `config` then holds the `sentinel …` lines. Default: `server`. */
  readonly mode?: 'server' | 'sentinel';
  /** Variables that its process gets on top of ours. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * A real Redis server on a loopback port, in memory only. It dies with this process at the latest, and
 * a forgotten one does not keep jest from exiting.
 */
export class RedisServer {
  readonly port: number;
  readonly #run: RedisRun;
  readonly #ownCommands: (readonly CommandPart[])[] = [];
  #process: RedisProcess;

  private constructor(port: number, run: RedisRun, process: RedisProcess) {
    this.port = port;
    this.#run = run;
    this.#process = process;
  }

  /** Starts a server and resolves once it answers. */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await RedisServer.#startOn(options.port ?? (await freePort()), options);
      } catch (error) {
        const anotherPortMayDo = error instanceof PortTakenError && options.port === undefined;
        if (!anotherPortMayDo || attempt === PORT_ATTEMPTS) throw error;
      }
    }
  }

  static async #startOn(port: number, options: RedisServerOptions): Promise<RedisServer> {
    const { mode = 'server', environment = {} } = options;
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-redis-'));
    const run = { folder, mode, environment };
    let process: RedisProcess | undefined;
    try {
      writeConfig(folder, configLines(port, mode, options));
      process = await RedisProcess.start(run);
      const server = new RedisServer(port, run, process);
      if (options.replicaOf) await server.hasSynced();
      return server;
    } catch (error) {
      await process?.kill();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** `redis://127.0.0.1:<port>` */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** The process id of the current run. */
  get pid(): number {
    return this.#process.pid;
  }

  /** False after `stop()`, `kill()` or a crash. A frozen server is running. */
  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** Ends the server in an orderly way and removes its files. Does nothing the second time. */
  async stop(): Promise<void> {
    if (this.isRunning) {
      this.thaw(); // a stopped process does not see SIGTERM
      await this.#process.terminate();
    }
    rmSync(this.#run.folder, { recursive: true, force: true });
  }

  /** Ends the server with SIGKILL and waits until it is gone. `restart()` brings it back. */
  async kill(): Promise<void> {
    if (this.isRunning) await this.#process.kill();
  }

  /** Kills the server if it runs, and starts it on the same port with empty data. */
  async restart(): Promise<void> {
    await this.kill();
    rmSync(join(this.#run.folder, 'dump.rdb'), { force: true }); // replicas write one even without persistence
    this.#ownCommands.length = 0;
    this.#process = await RedisProcess.start(this.#run);
  }

  /** Stops the process (SIGSTOP): connections stay open, nothing is answered. */
  freeze(): void {
    this.#process.signal('SIGSTOP');
  }

  /** Lets a frozen server go on (SIGCONT). */
  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  /** Sends one command on a connection of its own, which it closes; rejects if the server is down. */
  async command(...parts: readonly CommandPart[]): Promise<unknown> {
    const answer = await sendOnce(this.port, parts);
    this.#ownCommands.push(parts);
    return answer;
  }

  /** Resolves when this replica has the data of its master. */
  async hasSynced(withinMs = 15_000): Promise<void> {
    await eventually(
      async () =>
        String(await this.command('INFO', 'replication')).includes('master_link_status:up'),
      { withinMs },
    );
  }

  /**
   * Calls by command name since the server started, without those made through `command()`. A script counts as
   * its EVALSHA and every command it calls; `commandsSentDuring()` leaves the latter out.
   */
  async commandStats(): Promise<CommandStats> {
    const own = [...this.#ownCommands]; // INFO counts itself only after it has answered
    const all = parseCommandStats(String(await this.command('INFO', 'commandstats')));
    return subtractCommandStats(all, countCommands(own, all));
  }

  /**
   * Every key of database 0, without those of a trial (after an error, a store finds out by one whether the server grants locks, while the
   * test goes on), and without the records of instances.
   */
  async namesInUse(): Promise<readonly string[]> {
    const names = (await this.command('KEYS', '*')) as string[];
    return names.filter((name) => !/<trial:|\{instances\}/.test(name)).sort();
  }

  /** The sum of `commandStats()`. */
  async commandCount(): Promise<number> {
    return sumCommandStats(await this.commandStats());
  }

  /** Calls by command name while `work` ran, counted as in `commandStats()`. */
  async commandsDuring(work: () => Promise<unknown>): Promise<CommandStats> {
    const before = await this.commandStats();
    await work();
    return subtractCommandStats(await this.commandStats(), before);
  }

  /** The commands clients sent while `work` ran, in order, as MONITOR shows them; scripts' inner commands are not. */
  async commandsSentDuring(work: () => Promise<unknown>): Promise<readonly SentCommand[]> {
    const commands = await recordCommands(this.port, work);
    this.#ownCommands.push(['MONITOR'], ['PING']);
    return commands;
  }
}

function configLines(
  port: number,
  mode: 'server' | 'sentinel',
  options: RedisServerOptions,
): string[] {
  const lines = [`port ${port}`, 'bind 127.0.0.1', 'dir ./'];
  if (mode === 'server') {
    // Without the delay of 5 s for further replicas, a replica has its data at once.
    lines.push('save ""', 'appendonly no', 'repl-diskless-sync-delay 0');
    if (options.replicaOf) lines.push(`replicaof 127.0.0.1 ${options.replicaOf.port}`);
  }
  for (const [name, value] of Object.entries(options.config ?? {})) lines.push(`${name} ${value}`);
  return lines;
}
