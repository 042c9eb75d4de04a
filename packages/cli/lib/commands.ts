import type { Command, LocalCommand, RedisCommand } from './command.js';
import { printable } from './text/printable.js';
import { suggestion, UsageError } from './usage-error.js';

const list: RedisCommand = {
  works: 'with-redis',
  name: 'list',
  summary: 'Keys that are held, waited for or marked as done',
  word: { name: 'start-of-keys', isRequired: false },
  options: ['unresponsive', 'detached', 'failed', 'sort', 'limit'],
  section: 'list-and-watch',
  examples: [
    ['list --unresponsive', 'Keys whose holder is busy, frozen, cut off or dead'],
    ['list order: --sort held --limit 10', 'The ten keys of order: that are held longest'],
    ['list --json', 'Every key, for a script'],
  ],
};

const show: RedisCommand = {
  works: 'with-redis',
  name: 'show',
  summary: 'One key: who holds it, who waits, in which line, since when',
  word: { name: 'key', isRequired: true },
  options: [],
  section: 'show',
  examples: [
    ['show order:42', 'Who holds the key, what to do about it, and who waits'],
    ['show order:42 --json', 'The same for a script'],
  ],
};

const watch: RedisCommand = {
  works: 'with-redis',
  name: 'watch',
  summary: 'As list, redrawn in place',
  word: { name: 'start-of-keys', isRequired: false },
  options: ['unresponsive', 'detached', 'failed', 'sort', 'limit', 'interval'],
  section: 'list-and-watch',
  examples: [
    ['watch order: --interval 500ms', 'Keys that begin with order:, twice a second'],
    ['watch --json --interval 10s', 'One document on each line, for a script'],
  ],
};

const top: RedisCommand = {
  works: 'with-redis',
  name: 'top',
  summary: 'Keys that callers wait for, and waited for in the last 5 minutes, redrawn in place',
  options: ['limit', 'interval'],
  section: 'top',
  examples: [
    ['top --limit 5', 'Five keys: those with the oldest waits first'],
    ['top --json', 'One look for a script'],
  ],
};

const instances: RedisCommand = {
  works: 'with-redis',
  name: 'instances',
  summary: 'Services that use these locks, the newest first',
  options: ['unresponsive', 'limit'],
  section: 'instances-and-audit',
  examples: [
    ['instances', 'Every service that reported within the last hour'],
    ['instances --unresponsive', 'Those that are busy, frozen, cut off or dead'],
    ['instances --json', 'The same for a script'],
  ],
};

const audit: RedisCommand = {
  works: 'with-redis',
  name: 'audit',
  summary: 'What operators did, the newest first',
  options: ['limit'],
  section: 'instances-and-audit',
  examples: [
    ['audit', 'The last 20 interventions'],
    ['audit --limit 200', 'The last 200'],
  ],
};

const release: RedisCommand = {
  works: 'with-redis',
  name: 'release',
  summary: 'Frees a key, if the holder that you saw still has it',
  word: { name: 'key', isRequired: true },
  options: ['reason', 'by', 'if-holder', 'yes', 'dry-run'],
  section: 'release-release-instance-and-forget',
  examples: [
    ['release order:42 --dry-run', 'Show who would lose the key, and change nothing'],
    ["release order:42 --reason 'stuck since 3 am'", 'Show the holder, ask, and free the key'],
    [
      "release order:42 --if-holder 3f2a9c1d0e4b --reason 'INC-1234' --yes",
      'In a script: free the key if this holder still has it',
    ],
  ],
};

const releaseInstance: RedisCommand = {
  works: 'with-redis',
  name: 'release-instance',
  summary: 'Frees all keys of one instance, for a machine that is dead',
  word: { name: 'id', isRequired: true },
  options: ['reason', 'by', 'yes', 'dry-run'],
  section: 'release-release-instance-and-forget',
  examples: [
    ['release-instance BcIqSEHz -n', 'Print the keys that it would lose'],
    ["release-instance BcIqSEHz --reason 'machine is dead'", 'Ask, and free what it holds'],
    ["release-instance BcIqSEHz --reason 'INC-1234' --yes", 'In a script: do not ask'],
  ],
};

const forget: RedisCommand = {
  works: 'with-redis',
  name: 'forget',
  summary: 'Forgets work that was done once, so that it is done again',
  word: { name: 'key', isRequired: true },
  options: ['reason', 'by', 'yes', 'dry-run'],
  section: 'release-release-instance-and-forget',
  examples: [
    ['forget report:2026-11-24 -n', 'Print what would be forgotten'],
    ["forget report:2026-11-24 --reason 'wrong prices'", 'Ask, and have the work done again'],
    ["forget report:2026-11-24 --reason 'INC-1234' --yes", 'In a script: do not ask'],
  ],
};

const doctor: RedisCommand = {
  works: 'with-redis',
  name: 'doctor',
  summary: 'What is wrong, or will go wrong, with this Redis as a place for locks',
  options: [],
  section: 'doctor',
  examples: [
    ['doctor', 'Examine the Redis of REDIS_URL'],
    [
      'doctor --redis redis://localhost:6379/2 --prefix shop:lock:',
      'Another database, and a client with the keyPrefix shop:',
    ],
    ['doctor --json', 'For a monitor: ends with 4 if there are errors'],
  ],
};

const migrate: LocalCommand = {
  works: 'locally',
  name: 'migrate',
  summary: 'Rewrites code that uses redlock, redis-semaphore and others',
  word: { name: 'paths', isRequired: false, isList: true, values: 'files' },
  options: ['dry-run', 'drop-in'],
  section: 'migrate',
  examples: [
    ['migrate src -n', 'Print the changes as a diff, and write nothing'],
    ['migrate src', 'Rewrite the files in src'],
  ],
};

const completion: LocalCommand = {
  works: 'locally',
  name: 'completion',
  summary: 'Prints a script with which a shell completes commands and options',
  word: { name: 'shell', isRequired: true, values: ['bash', 'zsh', 'fish'] },
  options: [],
  section: 'completion',
  examples: [
    ['completion bash >> ~/.bashrc', 'bash, for new shells'],
    ['completion zsh > ~/.zfunc/_nestjs-holdfast', 'zsh, with ~/.zfunc in fpath before compinit'],
    ['completion fish > ~/.config/fish/completions/nestjs-holdfast.fish', 'fish'],
  ],
};

/** In the order of the help. */
export const GROUPS: readonly (readonly [title: string, commands: readonly Command[]])[] = [
  ['Look', [list, show, watch, top, instances, audit]],
  ['Act', [release, releaseInstance, forget]],
  ['Check', [doctor]],
  ['Move', [migrate]],
  ['Shell', [completion]],
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(([, commands]) => commands);

/** @throws UsageError */
export function commandNamed(name: string): Command {
  const found = COMMANDS.find((command) => command.name === name);
  if (found !== undefined) return found;
  const names = COMMANDS.map((command) => command.name);
  throw new UsageError(
    `There is no command "${printable(name)}".${suggestion(name, names)} Commands are ${names.join(', ')}.`,
  );
}
