/** Plays a plan: starts servers and clients, does to them what the plan says, and has the history checked. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { check } from './checker.js';
import { ClientProcess } from './client-process.js';
import type { ClientSettings, Sabotage } from './client.js';
import { type HistoryEvent, type LeftKey, now, readEvents, Recorder } from './history.js';
import {
  KEYS,
  LEADER,
  LONGEST_TTL_MS,
  NODE_TIMEOUT_MS,
  type NodeFault,
  type Plan,
  range,
  type Step,
  type WayFault,
} from './plan.js';
import type { Parcel } from './recorded-calls.js';

const CLIENT = new URL('./client.ts', import.meta.url);

/** After the last fault everybody goes on for so long. */
const CALM_MS = 1_500;

/** How long lines and fencing tokens outlive their lease: shorter than in life, for the run waits until they are gone. */
const FENCING_TOKEN_RETENTION_MS = 1_000;

/** Long enough for several of the short sections. */
const TENURE_MS = 100;

/** In the mode `clocks-set-back`: so long after each other were the clocks of the servers ahead. */
const AHEAD_MS = 20_000;

export interface Round {
  readonly plan: Plan;
  readonly events: readonly HistoryEvent[];
  readonly violations: readonly string[];
  /** Where the history is, if there are violations. */
  readonly folder: string;
}

/** One server and the ways to it, one for each slot of a client. */
interface Node {
  readonly server: RedisServer;
  readonly proxies: readonly TcpProxy[];
}

/** Never rejects because of what the library did: that is a violation. */
export async function playRound(plan: Plan, sabotage?: Sabotage): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-faults-'));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan, undefined, 2));
  const stage = new Stage(plan, folder, sabotage);
  try {
    await stage.open();
    const complaints = await stage.play();
    const left = await stage.keysLeft();
    const events = readEvents(folder);
    const violations = [...complaints, ...check({ plan, events, left })];
    if (violations.length === 0) rmSync(folder, { recursive: true });
    return { plan, events, violations, folder };
  } finally {
    await stage.close();
  }
}

/** Something that is done, and undone. */
interface Harm {
  readonly begin: () => unknown;
  readonly end: () => unknown;
}

class Stage {
  readonly #plan: Plan;
  readonly #folder: string;
  readonly #sabotage: Sabotage | undefined;
  readonly #recorder: Recorder;
  readonly #nodes: Node[] = [];
  /** The client of each slot, and all that there have been. */
  readonly #clients: ClientProcess[] = [];
  readonly #everyClient: ClientProcess[] = [];
  readonly #closing = new AbortController();

  constructor(plan: Plan, folder: string, sabotage: Sabotage | undefined) {
    this.#plan = plan;
    this.#folder = folder;
    this.#sabotage = sabotage;
    this.#recorder = new Recorder(folder, 'run');
  }

  async open(): Promise<void> {
    for (let node = 0; node < this.#plan.nodes; node += 1) {
      const server = await RedisServer.start();
      const proxies = range(this.#plan.clients).map(() => TcpProxy.start(server.port));
      this.#nodes.push({ server, proxies: await Promise.all(proxies) });
      if (this.#plan.mode === 'clocks-set-back')
        await setTokensAhead(server, (node + 1) * AHEAD_MS);
    }
    for (const slot of range(this.#plan.clients)) this.#startClient(slot);
    await Promise.all(this.#clients.map(({ ready }) => ready));
  }

  /** Resolves when all faults are over and all clients have ended, with what went wrong with these. */
  async play(): Promise<readonly string[]> {
    const startedAt = now();
    const lanes = new Set(this.#plan.steps.map(({ lane }) => lane));
    await Promise.all([...lanes].map((lane) => this.#playLane(lane, startedAt)));
    await Promise.all(this.#clients.map(({ ready }) => ready));
    await sleep(CALM_MS);
    for (const client of this.#clients) client.finish();
    return (await Promise.all(this.#everyClient.map(({ complaint }) => complaint))).flat();
  }

  /** What is on the servers when every lease and every line has had its time. */
  async keysLeft(): Promise<readonly LeftKey[]> {
    const longestMs = LONGEST_TTL_MS + FENCING_TOKEN_RETENTION_MS;
    await sleep(longestMs + 200);
    const left: LeftKey[] = [];
    for (const [node, { server }] of this.#nodes.entries()) {
      for (const name of (await server.command('KEYS', '*')) as string[]) {
        const ttlMs = Number(await server.command('PTTL', name));
        if (ttlMs !== -2) left.push({ node, name, ttlMs });
      }
    }
    return left;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#everyClient.map((client) => client.kill()));
    for (const { server, proxies } of this.#nodes) {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      server.thaw();
      await server.stop();
    }
    this.#recorder.close();
  }

  async #playLane(lane: number, startedAt: number): Promise<void> {
    for (const step of this.#plan.steps.filter((each) => each.lane === lane)) {
      await sleep(Math.max(0, startedAt + step.atMs - now()));
      await this.#do(step);
    }
  }

  async #do(step: Step): Promise<void> {
    const client =
      step.kind.startsWith('client-') &&
      this.#clients[(step as Step & { readonly target: number }).target];
    if (client) await client.ready;
    const harms = this.#harmsOf(step);
    this.#recorder.record({
      type: 'fault',
      step: step.step,
      ...(client && { client: client.name }),
    });
    await Promise.all(harms.map(({ begin }) => begin()));
    await sleep(step.forMs);
    await Promise.all(harms.map(({ end }) => end()));
    this.#recorder.record({ type: 'healed', step: step.step });
  }

  #harmsOf(step: Step): readonly Harm[] {
    switch (step.kind) {
      case 'client-stopped': {
        const client = this.#clients[step.target]!;
        return [{ begin: () => client.signal('SIGSTOP'), end: () => client.signal('SIGCONT') }];
      }
      case 'client-killed': {
        const client = this.#clients[step.target]!;
        return [{ begin: () => client.kill(), end: () => this.#startClient(step.target).ready }];
      }
      case 'client-cut-off':
        return step.from.map((node) =>
          onTheWay(step.by, this.#nodes[node]!.proxies[step.target]!, 0),
        );
      case 'outage':
        return step.targets.flatMap((node) => toNode(step.by, this.#nodes[node]!, 0));
      case 'node-restarted': {
        const { server } = this.#nodes[step.target]!;
        const without = step.without === undefined ? [] : [this.#nodes[step.without]!];
        return [
          ...without.flatMap((node) => toNode('refused', node, 0)),
          { begin: () => undefined, end: () => restart(server) },
        ];
      }
      default:
        return toNode(step.kind, this.#nodes[step.target]!, step.delayMs);
    }
  }

  /** To whatever runs in the next slot by then, each time that it is delivered. */
  async #deliver(parcel: Parcel, slot: number): Promise<void> {
    const { signal } = this.#closing;
    await Promise.all(
      parcel.afterMs.map(async (afterMs, turn) => {
        await sleep(afterMs, undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) this.#clients[(slot + 1 + turn) % this.#plan.clients]!.attach(parcel);
      }),
    );
  }

  #startClient(slot: number): ClientProcess {
    const generation = this.#everyClient.length;
    const name = `${slot}.${generation}`;
    const settings: ClientSettings = {
      slot,
      name,
      seed: this.#plan.seed * 1_000 + generation,
      folder: this.#folder,
      urls: this.#nodes.map(({ proxies }) => `redis://127.0.0.1:${proxies[slot]!.port}`),
      options: {
        ttl: LONGEST_TTL_MS,
        nodeTimeout: NODE_TIMEOUT_MS,
        fencingTokenRetention: FENCING_TOKEN_RETENTION_MS,
        handoff: this.#plan.withoutHandoff.includes(slot) ? false : { tenure: TENURE_MS },
        // No `bootstrap`: a server that has forgotten everything looks like a new one to a client that starts.
        ...(this.#plan.mode === 'guarded' && { restartGuard: { maxTtl: LONGEST_TTL_MS } }),
      },
      sabotage: this.#sabotage,
    };
    const client = new ClientProcess(CLIENT, settings);
    client.onDetached = (parcel) => void this.#deliver(parcel, slot);
    this.#recorder.record({ type: 'started', client: name });
    this.#clients[slot] = client;
    this.#everyClient.push(client);
    return client;
  }
}

/** As if it had granted each key once when its clock was ahead by so much. Fencing tokens are in µs. */
async function setTokensAhead(server: RedisServer, aheadMs: number): Promise<void> {
  const token = (Date.now() + aheadMs) * 1_000;
  for (const key of [...KEYS, LEADER]) {
    await server.command(
      'SET',
      `{lock:${key}}:fence`,
      token,
      'PX',
      aheadMs + FENCING_TOKEN_RETENTION_MS,
    );
  }
}

function toNode(kind: NodeFault, { server, proxies }: Node, delayMs: number): readonly Harm[] {
  switch (kind) {
    case 'node-killed':
      return [{ begin: () => server.kill(), end: () => restart(server) }];
    case 'node-stopped':
      return [{ begin: () => server.freeze(), end: () => server.thaw() }];
    default:
      return proxies.map((way) => onTheWay(kind, way, delayMs));
  }
}

function onTheWay(kind: WayFault, way: TcpProxy, delayMs: number): Harm {
  switch (kind) {
    case 'silence':
      return { begin: () => way.pause(), end: () => way.resume() };
    case 'cut':
      return { begin: () => way.cut(), end: () => undefined };
    case 'delayed':
      return { begin: () => way.delay(delayMs), end: () => way.delay(0) };
    case 'refused': {
      const begin = (): void => {
        way.refuse();
        way.cut();
      };
      return { begin, end: () => way.accept() };
    }
  }
}

/** Empty. Its port may have been taken meanwhile, for a moment, by a connection of somebody else. */
const restart = (server: RedisServer): Promise<void> => eventually(() => server.restart());
