/** How often each command ran, by the name INFO gives it (`set`, `evalsha`, `client|kill`). */
export type CommandStats = ReadonlyMap<string, number>;

/** Reads the answer of `INFO commandstats`. */
export function parseCommandStats(info: string): CommandStats {
  const stats = new Map<string, number>();
  for (const [, name, calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    stats.set(String(name), Number(calls));
  }
  return stats;
}

/** What was added between two points; commands that were not called are left out. */
export function subtractCommandStats(after: CommandStats, before: CommandStats): CommandStats {
  const added = new Map<string, number>();
  for (const [name, calls] of after) {
    const difference = calls - (before.get(name) ?? 0);
    if (difference !== 0) added.set(name, difference);
  }
  return added;
}

/** The sum over all commands. */
export function sumCommandStats(stats: CommandStats): number {
  return [...stats.values()].reduce((sum, calls) => sum + calls, 0);
}

/** Counts commands under the names they have in `known`: some with their subcommand, most without. */
export function countCommands(
  commands: readonly (readonly (string | number)[])[],
  known: CommandStats,
): CommandStats {
  const counts = new Map<string, number>();
  for (const [name, subcommand] of commands) {
    const fullName = `${String(name)}|${String(subcommand)}`.toLowerCase();
    const statName = known.has(fullName) ? fullName : String(name).toLowerCase();
    counts.set(statName, (counts.get(statName) ?? 0) + 1);
  }
  return counts;
}
