import type { Application } from './programme/application.js';
import type { Holdings } from './programme/holdings.js';
import type { History } from './history.js';
import type { Fault, Scenario } from './scenario.js';
import type { Link } from './world/link.js';
import type { Network } from './world/network.js';
import type { Server } from './world/server.js';
import type { SimServer } from './world/sim-server.js';
import type { World } from './world/world.js';

export interface Stage {
  readonly world: World;
  readonly history: History;
  readonly holdings: Holdings;
  readonly network: Network;
  readonly servers: readonly SimServer[];
  /** What runs on a machine now. */
  application(process: number): Application | undefined;
  /** Another process takes the place of one that has died. */
  startAgain(process: number): void;
}

/** Where other software writes. */
export const foreignName = ({
  key,
  at,
}: Extract<Fault, { readonly kind: 'foreign-value' }>): string =>
  at === 'main' ? `lock:${key}` : `{lock:${key}}:${at}`;

/** What undoes a fault, after so long; nothing where it needs no undoing. */
type Heal = { readonly afterMs: number; readonly heal: () => void } | undefined;

const BRINGS_OLDER_DATA: ReadonlySet<Fault['kind']> = new Set([
  'data-restored',
  'fail-over',
  'server-restarted',
]);

/** Does what a scenario says to the processes, the servers and the ways between them. */
export class Faults {
  readonly #stage: Stage;
  readonly #saved = new Map<Fault, Server>();
  /** Removes what other software has written, and writes no more. */
  readonly #removals: (() => void)[] = [];
  /** How many have been done. */
  done = 0;

  constructor(stage: Stage, { faults }: Scenario) {
    this.#stage = stage;
    const { world, history } = stage;
    faults.forEach((fault, index) => {
      if (fault.kind === 'server-restarted' && fault.data === 'older') this.#save(fault);
      if (fault.kind === 'data-restored') this.#save(fault);
      world.at(fault.atMs * 1_000, () => {
        history.record({ type: 'fault', fault: index });
        this.done += 1;
        const healing = this.#do(fault, index);
        if (healing === undefined) history.record({ type: 'healed', fault: index });
        else
          world.in(healing.afterMs * 1_000, () => {
            healing.heal();
            history.record({ type: 'healed', fault: index });
          });
      });
    });
  }

  /** What will be on the disk. */
  #save(fault: Extract<Fault, { readonly missingMs: number }>): void {
    const { world, servers } = this.#stage;
    world.at(Math.max(0, fault.atMs - fault.missingMs) * 1_000, () => {
      const { server, name } = servers[fault.server]!;
      this.#saved.set(fault, server.copy(`${name} saved for ${String(fault.atMs)}`));
    });
  }

  #do(fault: Fault, index: number): Heal {
    if ('server' in fault && 'process' in fault) return this.#harmLink(fault);
    if (!('server' in fault)) return this.#harmProcess(fault, index);
    const healing = this.#harmServer(fault);
    // Older data bring nothing of other software back.
    if (BRINGS_OLDER_DATA.has(fault.kind)) for (const remove of this.#removals) remove();
    return healing;
  }

  #harmProcess(fault: Exclude<Fault, { readonly server: number }>, index: number): Heal {
    const { holdings, history } = this.#stage;
    const victim = this.#stage.application(fault.process);
    if (victim === undefined || victim.hasEnded) return undefined;
    const { process } = victim;
    const client = process.name;
    switch (fault.kind) {
      case 'process-killed':
      case 'process-vanished':
        holdings.dies(process);
        history.record({ type: 'killed', client });
        if (fault.kind === 'process-vanished') {
          process.vanish();
          return undefined;
        }
        process.die();
        if (fault.againAfterMs === undefined) return undefined;
        return {
          afterMs: fault.againAfterMs,
          heal: () => {
            this.#stage.startAgain(fault.process);
          },
        };
      case 'process-shut-down':
        process.input(() => void victim.shutDown());
        return undefined;
      case 'process-stands-still':
        holdings.lookAt(process);
        history.record({ type: 'paused', client });
        process.standStill(fault.forMs, fault.how);
        return { afterMs: fault.forMs, heal: () => undefined };
      case 'process-clock-set':
        process.clock.step(fault.byMs);
        return undefined;
      case 'force-released':
        process.input(() => void victim.forceRelease(fault.key));
        return undefined;
      case 'seen-released':
      case 'work-forgotten':
      case 'instance-released':
        process.input(() => void victim.intervene(fault, index));
        return undefined;
    }
  }

  #harmServer(fault: Exclude<Fault, { readonly process: number }>): Heal {
    const server = this.#stage.servers[fault.server]!;
    switch (fault.kind) {
      case 'server-frozen':
        server.freeze(fault.forMs);
        return { afterMs: fault.forMs, heal: () => undefined };
      case 'server-slow':
        server.slowUs = fault.eachMs * 1_000;
        return {
          afterMs: fault.forMs,
          heal: () => {
            server.slowUs = 0;
          },
        };
      case 'server-restarted':
        server.crash(fault.data === 'older' ? this.#saved.get(fault)! : fault.data);
        return {
          afterMs: fault.forMs,
          heal: () => {
            server.start(fault.loadingMs);
          },
        };
      case 'server-flushed':
        server.command('flushall');
        return undefined;
      case 'scripts-flushed':
        server.command('script', 'flush');
        return undefined;
      case 'memory-full':
        server.setMemory('full');
        return {
          afterMs: fault.forMs,
          heal: () => {
            server.setMemory('enough');
          },
        };
      case 'server-clock-set':
        server.clock.step(fault.byMs);
        return undefined;
      case 'line-lost':
        server.command('del', `{lock:${fault.key}}:queue`);
        return undefined;
      case 'key-lost':
        server.command('del', `lock:${fault.key}`);
        return undefined;
      case 'data-restored':
        server.restore(this.#saved.get(fault)!);
        return undefined;
      case 'foreign-value': {
        const name = foreignName(fault);
        server.command('del', name);
        server.command('hset', name, 'field', 'of other software');
        return {
          afterMs: fault.forMs,
          heal: () => {
            const remove = (): void => {
              const found = server.command('type', name);
              if ('value' in found && String(found.value) === 'hash') server.command('del', name);
            };
            remove();
            this.#removals.push(remove);
          },
        };
      }
      case 'key-forbidden': {
        const name = `lock:${fault.key}`;
        server.forbidden.add(name);
        return {
          afterMs: fault.forMs,
          heal: () => {
            server.forbidden.delete(name);
          },
        };
      }
      case 'messages-forged':
        forge(server, fault.key);
        return undefined;
      case 'connections-reset':
        server.dropConnections();
        return undefined;
      case 'password-changed':
        server.wrongPasswords += 1;
        server.dropConnections();
        return {
          afterMs: fault.forMs,
          heal: () => {
            server.wrongPasswords -= 1;
          },
        };
      case 'fail-over':
        server.failOver(fault.to);
        return undefined;
      case 'replication-cut':
        server.replication.isCut = true;
        return {
          afterMs: fault.forMs,
          heal: () => {
            server.replication.catchUp(server.server);
          },
        };
    }
  }

  #harmLink(fault: Fault & { readonly process: number; readonly server: number }): Heal {
    const server = this.#stage.servers[fault.server]!;
    const link: Link = this.#stage.network.link(`p${String(fault.process)}`, server.name);
    switch (fault.kind) {
      case 'link-cut': {
        const { directions } = fault;
        link.cut(directions);
        return {
          afterMs: fault.forMs,
          heal: () => {
            link.heal(directions);
          },
        };
      }
      case 'link-slow':
        link.extraUs += fault.extraMs * 1_000;
        return {
          afterMs: fault.forMs,
          heal: () => {
            link.extraUs -= fault.extraMs * 1_000;
          },
        };
      case 'link-stalled':
        for (const connection of link.connections) if (connection.isOpen) connection.stall();
        return undefined;
      case 'link-reset':
        for (const connection of [...link.connections]) connection.reset();
        return undefined;
      default:
        return undefined;
    }
  }
}

/** A client that may read the line and publish calls all processes at once, for the key and for others. */
function forge(server: SimServer, key: string): void {
  const line = server.command('zrange', `{lock:${key}}:queue`, '0', '-1');
  const places = 'value' in line && Array.isArray(line.value) ? line.value.map(String) : [];
  const calls = places.flatMap((place) => {
    const [token = ''] = place.split(' ');
    return [token.slice(-8), token];
  });
  const channels = new Set([...server.sessions].flatMap((session) => [...session.channels]));
  for (const channel of channels) {
    for (const to of [...calls, 'nobody'])
      for (const ms of ['0', '7', '999999999999', '-1', 'x'])
        for (const name of [`lock:${key}`, 'lock:unknown'])
          server.publish(channel, `${to} ${ms} ${name}`);
    for (const text of ['', ' ', '{}', '[1,2', `lock:${key}`]) server.publish(channel, text);
  }
}
