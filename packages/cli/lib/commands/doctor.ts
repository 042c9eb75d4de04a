import type { RunWithRedis } from '../command.js';
import { examine } from '../doctor/examine.js';
import { EXIT } from '../exit-codes.js';
import { findingLines, numberOf } from '../text/findings.js';
import { toJson } from '../text/printable.js';

/** What goes wrong in production. */
export const doctor: RunWithRedis = async ({
  target,
  session,
  runtime,
  options,
  terminal,
  ink,
}) => {
  const opened = session();
  const { findings, reachable } = await examine(target, opened, runtime);
  // What the library warns of is among the findings.
  opened.warnings.clear();
  const isHealthy = numberOf(findings, 'error') === 0;
  if (options.json === true)
    terminal.write(`${toJson({ healthy: isHealthy, reachable, findings })}\n`);
  else {
    terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
    terminal.write(`${findingLines(findings, terminal.size().columns, ink).join('\n')}\n`);
  }
  if (reachable === 0) return EXIT.unavailable;
  return isHealthy ? EXIT.ok : EXIT.unhealthy;
};
