import type { ScriptCall } from '../scripts/script.js';
import type { Command, CommandResult } from './redis-client.js';

/** Some clients take texts only. Not with `map`, which costs twice as much for the shortest requests. */
function asText(parts: (string | number)[]): string[] {
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at];
    if (typeof part === 'number') parts[at] = String(part);
  }
  return parts as string[];
}

export const evalshaArgs = (sha: string, call: ScriptCall): string[] =>
  asText((['evalsha', sha] as (string | number)[]).concat(call));

export const textOf = (command: Command): string[] => asText([...command]);

/** The outcomes of commands that were sent together. */
export async function settled(
  replies: readonly Promise<unknown>[],
): Promise<readonly CommandResult[]> {
  const outcomes = await Promise.allSettled(replies);
  return outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? [null, outcome.value] : [outcome.reason as Error, undefined],
  );
}
