/** Plays the plan of an engine test on a store, and has the history checked. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientProcess } from '../faults/client-process.js';
import { type HistoryEvent, now, readEvents, Recorder } from '../faults/history.js';
import { range } from '../faults/plan.js';
import { type EngineBackend, openBackend } from './backends.js';
import { checkEngine, type DoneFault } from './checker.js';
import type { MixSettings } from './mix.js';
import type { EnginePlan, Fault } from './plan.js';
import { Pulse } from './pulse.js';

const MIX = new URL('./mix.ts', import.meta.url);

/** A process that says nothing for so long has an event loop that is dead, also on a machine that is busy. */
const DEAD_AFTER_MS = 6_000;

const SCRIPTS = ['evalsha', 'eval'] as const;

export interface EngineRound {
  readonly plan: EnginePlan;
  readonly events: readonly HistoryEvent[];
  readonly violations: readonly string[];
  readonly scripts: number;
  /** Where the history is, if there are violations. */
  readonly folder: string;
}

/** On a store of its own. */
export async function playOnce(plan: EnginePlan): Promise<EngineRound> {
  const backend = await openBackend(plan.store);
  try {
    return await playRound(plan, backend);
  } finally {
    await backend.close();
  }
}

/** Never rejects because of what the library did: that is a violation. */
export async function playRound(plan: EnginePlan, backend: EngineBackend): Promise<EngineRound> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-engine-'));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan, undefined, 2));
  const stage = new Stage(plan, backend, folder);
  try {
    const before = await scriptsOf(backend);
    const complaints = await stage.play();
    const after = await scriptsOf(backend);
    const scripts = Math.max(0, ...after.map((count, server) => count - before[server]!));
    const events = readEvents(folder);
    const { faults } = stage;
    const violations = [...complaints, ...checkEngine({ plan, events, faults, scripts })];
    if (violations.length === 0) rmSync(folder, { recursive: true });
    return { plan, events, violations, scripts, folder };
  } finally {
    await stage.close();
  }
}

/** Of each server, those that processes have sent. */
const scriptsOf = ({ servers }: EngineBackend): Promise<readonly number[]> =>
  Promise.all(
    servers.map(async (server) => {
      const stats = await server.commandStats();
      return SCRIPTS.reduce((sum, name) => sum + (stats.get(name) ?? 0), 0);
    }),
  );

class Stage {
  readonly faults: DoneFault[] = [];
  readonly #plan: EnginePlan;
  readonly #backend: EngineBackend;
  readonly #recorder: Recorder;
  readonly #processes: readonly ClientProcess[];
  readonly #pulses: readonly Pulse[];
  readonly #dead = new Set<string>();

  constructor(plan: EnginePlan, backend: EngineBackend, folder: string) {
    this.#plan = plan;
    this.#backend = backend;
    this.#recorder = new Recorder(folder, 'run');
    this.#pulses = backend.address.ports.map((port) => new Pulse(port, this.#recorder));
    const count = 1 + Math.max(...plan.crews.map(({ process }) => process));
    this.#processes = range(count).map((process) => {
      const name = String(process);
      const settings: MixSettings = {
        ...{ name, folder, address: backend.address },
        seed: plan.seed * 100 + process,
        crews: plan.crews.filter((crew) => crew.process === process),
      };
      this.#recorder.record({ type: 'started', client: name });
      return new ClientProcess(MIX, settings, DEAD_AFTER_MS);
    });
  }

  /** Resolves when all processes have ended, with what went wrong with these. */
  async play(): Promise<readonly string[]> {
    await Promise.all(this.#processes.map(({ ready }) => ready));
    const complaints = Promise.all(this.#processes.map(({ complaint }) => complaint));
    for (const process of this.#processes) process.begin();
    const isOver = new AbortController();
    const over = complaints.finally(() => isOver.abort());
    await this.#playFaults(now(), isOver.signal);
    for (const process of this.#processes) process.finish();
    const found = (await over).flat();
    for (const process of this.#processes) if (process.wasKilled) this.#noteDeath(process);
    return found;
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
    await Promise.all(this.#pulses.map((pulse) => pulse.stop()));
    this.#recorder.close();
  }

  /** To the end of the run, or until there is nobody left. */
  async #playFaults(startedAt: number, signal: AbortSignal): Promise<void> {
    const until = (atMs: number): Promise<void> =>
      sleep(Math.max(0, startedAt + atMs - now()), undefined, { signal }).catch(() => undefined);
    for (const fault of this.#plan.faults) {
      await until(fault.atMs);
      if (signal.aborted) return;
      const from = now();
      await this.#do(fault);
      this.faults.push({ fault, from, to: now() });
    }
    await until(this.#plan.lengthMs);
  }

  async #do(fault: Fault): Promise<void> {
    switch (fault.kind) {
      case 'all-data-lost':
        return this.#everywhere('FLUSHALL');
      case 'line-lost':
        return this.#wherever(fault.key, 'DEL', `{lock:${fault.key}}:queue`);
      case 'key-lost':
        return this.#wherever(fault.key, 'UNLINK', `lock:${fault.key}`);
      case 'connections-killed':
        return this.#everywhere('CLIENT', 'KILL', 'SKIPME', 'yes');
      case 'fail-over':
        if (this.#backend.failOver === undefined) throw new Error('No replica can take over.');
        return this.#backend.failOver(fault.key);
      case 'slot-moved':
        if (this.#backend.moveSlot === undefined) throw new Error('There are no slots.');
        return this.#backend.moveSlot(fault.key);
      case 'process-killed':
        return this.#kill(this.#processes[fault.process]!);
    }
  }

  async #kill(process: ClientProcess): Promise<void> {
    await process.kill();
    this.#noteDeath(process);
  }

  #noteDeath({ name: client }: ClientProcess): void {
    if (this.#dead.has(client)) return;
    this.#dead.add(client);
    this.#recorder.record({ type: 'killed', client });
  }

  async #everywhere(...command: readonly string[]): Promise<void> {
    await Promise.all(this.#backend.servers.map((server) => server.command(...command)));
  }

  async #wherever(key: string, ...command: readonly string[]): Promise<void> {
    const servers = await this.#backend.serversOf(key);
    await Promise.all(servers.map((server) => server.command(...command)));
  }
}
