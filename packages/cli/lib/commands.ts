import type { Command } from './command.js';
import { audit } from './commands/audit.js';
import { doctor } from './commands/doctor.js';
import { forget } from './commands/forget.js';
import { instances } from './commands/instances.js';
import { list } from './commands/list.js';
import { migrate } from './commands/migrate.js';
import { releaseInstance } from './commands/release-instance.js';
import { release } from './commands/release.js';
import { show } from './commands/show.js';
import { top } from './commands/top.js';
import { watch } from './commands/watch.js';
import { printable } from './text/printable.js';
import { suggestion, UsageError } from './usage-error.js';

/** In the order of the help. */
export const GROUPS: readonly (readonly [title: string, commands: readonly Command[]])[] = [
  ['Look', [list, show, watch, top, instances, audit]],
  ['Act', [release, releaseInstance, forget]],
  ['Check', [doctor]],
  ['Move', [migrate]],
];

const COMMANDS = GROUPS.flatMap(([, commands]) => commands);

/** @throws UsageError */
export function commandNamed(name: string): Command {
  const found = COMMANDS.find((command) => command.name === name);
  if (found !== undefined) return found;
  const names = COMMANDS.map((command) => command.name);
  throw new UsageError(
    `There is no command "${printable(name)}".${suggestion(name, names)} Commands are ${names.join(', ')}.`,
  );
}
