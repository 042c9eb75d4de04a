import { type ChildProcess, fork } from 'node:child_process';
import { compiledFile } from '../../support/compiled.js';
import type { Parcel } from './recorded-calls.js';

/** The part of a client's settings that its parent has to know. */
export interface Named {
  readonly name: string;
}

/** What a parent tells a client. */
export type Order = 'begin' | 'finish' | { readonly attach: Parcel };

/** What a client tells its parent. */
export type News = 'ready' | 'alive' | { readonly detached: Parcel };

const READY_WITHIN_MS = 30_000;

/** A client that has been told to finish has answered its last caller, and has shut down, after so long. */
const FINISH_WITHIN_MS = 20_000;

/**
 * A client of the run, in a process of its own, which is told its settings as JSON. Says `ready` when its callers begin, finishes when
 * told to.
 */
export class ClientProcess {
  readonly name: string;
  /** Resolves when its callers begin, or when it has ended before. */
  readonly ready: Promise<void>;
  /** Resolves when it has ended, with what is wrong about the way it did. */
  readonly complaint: Promise<readonly string[]>;
  /** A lock was detached, for another process. */
  onDetached: (parcel: Parcel) => void = () => undefined;
  readonly #process: ChildProcess;
  #isKilled = false;
  #diedOf: string | undefined;

  /** With a limit, a process that is ready and then says nothing for so long is ended: its event loop is dead. */
  constructor(script: URL, settings: Named, longestSilenceMs?: number) {
    this.name = settings.name;
    this.#process = fork(compiledFile(script), [JSON.stringify(settings)], {
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.complaint = this.#end();
    const isReady = new Promise<void>((resolve) => {
      this.#process.once('message', () => resolve());
    });
    const timer = this.#endAfter(READY_WITHIN_MS);
    this.ready = Promise.race([isReady, this.complaint.then(() => undefined)]).finally(() =>
      clearTimeout(timer),
    );
    this.#process.on('message', (news: News) => {
      if (typeof news === 'object') this.onDetached(news.detached);
    });
    if (longestSilenceMs !== undefined) this.#watch(longestSilenceMs);
  }

  /** Whether it was ended by SIGKILL, or by its own silence. */
  get wasKilled(): boolean {
    return this.#isKilled || this.#diedOf !== undefined;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal);
  }

  /** Ends it by SIGKILL, and resolves when it is gone. */
  async kill(): Promise<void> {
    this.#isKilled = true;
    this.#process.kill('SIGKILL');
    await this.complaint;
  }

  /** For those that wait for it when they are ready. */
  begin(): void {
    this.#order('begin');
  }

  /** A lock that another process has detached: its callers attach it, unless they have ended. */
  attach(parcel: Parcel): void {
    this.#order({ attach: parcel });
  }

  /** Asks its callers to stop; `complaint` tells what came of it. */
  finish(): void {
    const timer = this.#endAfter(FINISH_WITHIN_MS);
    void this.complaint.then(() => clearTimeout(timer));
    this.#order('finish');
  }

  #order(order: Order): void {
    if (this.#process.connected) this.#process.send(order, () => undefined);
  }

  #watch(longestSilenceMs: number): void {
    let timer: NodeJS.Timeout | undefined;
    this.#process.on('message', () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.#diedOf = `was ended: its event loop stood still for ${longestSilenceMs} ms`;
        this.#process.kill('SIGKILL');
      }, longestSilenceMs);
    });
    void this.complaint.then(() => clearTimeout(timer));
  }

  #endAfter(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#process.kill('SIGKILL'), ms);
  }

  #end(): Promise<readonly string[]> {
    let errors = '';
    this.#process.stderr?.on('data', (bytes: Buffer) => (errors += bytes.toString()));
    return new Promise((resolve) => {
      this.#process.once('error', (error) => resolve([`client ${this.name}: ${error.message}`]));
      this.#process.once('close', (code, signal) => {
        const asItShould = this.#isKilled || (code === 0 && errors === '');
        const how = `ended with ${String(code ?? signal)}: ${errors.trim().split('\n', 6).join(' | ')}`;
        resolve(asItShould ? [] : [`client ${this.name} ${this.#diedOf ?? how}`]);
      });
    });
  }
}
