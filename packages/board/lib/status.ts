import type { InstanceInfo } from 'nestjs-holdfast/admin';
import type { BoardHealth, BoardNode, BoardStatus } from './board.types.js';

interface Known {
  /** Missing while it is not known. */
  readonly health: BoardHealth | undefined;
  /** Why the store could not be asked. */
  readonly problem: string | undefined;
  readonly unresponsive: readonly InstanceInfo[];
}

const isWell = ({ problem, quarantinedForMs }: BoardNode): boolean =>
  problem === undefined && quarantinedForMs === 0;

/** Whether locks can be granted now; if not, since when, why, and what to do. */
export function statusOf({ health, problem, unresponsive }: Known): BoardStatus {
  if (health === undefined)
    return {
      level: 'bad',
      text: 'It is not known whether locks are granted',
      details: some(problem),
    };
  const troubled = health.nodes.filter((node) => !isWell(node));
  const details = troubled.flatMap(detailsOf);
  const since = earliest(troubled);
  if (!health.hasQuorum)
    return {
      level: 'bad',
      text: 'Locks are refused',
      details,
      since,
      section: sectionOf(troubled),
    };
  if (problem !== undefined)
    return {
      level: 'warning',
      text: 'Locks are granted; what is held is not known',
      details: [problem],
      section: sectionOf([], problem),
    };
  if (troubled.length > 0) {
    const text = `Locks are granted, without ${String(troubled.length)} of ${String(health.nodes.length)} Redis servers`;
    return { level: 'warning', text, details, since, section: sectionOf(troubled) };
  }
  if (unresponsive.length > 0) {
    const [first] = unresponsive;
    const who =
      unresponsive.length === 1 && first !== undefined
        ? `${first.application} on ${first.host}, pid ${String(first.pid)}, does`
        : `${String(unresponsive.length)} processes do`;
    const text = `Locks are granted; ${who} not reply`;
    const seen = unresponsive.map(({ seenAt }) => seenAt).sort((a, b) => a.getTime() - b.getTime());
    return {
      ...{ level: 'warning', text, details: [], since: seen[0] },
      section: 'an-instance-is-frozen-or-dead',
    };
  }
  return {
    level: health.warning === undefined ? 'good' : 'warning',
    text: 'Locks are granted',
    details: some(health.warning),
  };
}

const some = (text: string | undefined): readonly string[] => (text === undefined ? [] : [text]);

function detailsOf({ node, problem, quarantinedForMs, remedy }: BoardNode): readonly string[] {
  const why =
    problem ??
    `grants no locks for another ${String(Math.ceil(quarantinedForMs / 1_000))} s: it may have forgotten some`;
  return [`${node}: ${why}`, ...some(remedy)];
}

function earliest(nodes: readonly BoardNode[]): Date | undefined {
  const times = nodes.flatMap(({ since }) => since?.getTime() ?? []);
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

/** What the runbook says of it. */
function sectionOf(nodes: readonly BoardNode[], problem = ''): string {
  const problems = [problem, ...nodes.map((node) => node.problem ?? '')].join(' ');
  if (/\bOOM\b/.test(problems)) return 'memory-is-full';
  if (/NOPERM|ACL failure/.test(problems)) return 'a-right-is-missing';
  if (/\breplica\b|READONLY/.test(problems)) return 'after-a-fail-over';
  if (nodes.length > 0 && nodes.every(({ quarantinedForMs }) => quarantinedForMs > 0))
    return 'redis-lost-its-data';
  return 'everything-answers-503';
}
