import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { COMMANDS } from '../../packages/cli/lib/commands.js';
import { quoted } from '../../packages/cli/lib/completion/shell.js';
import { OPTION_NAMES, optionsOf, SORTS } from '../../packages/cli/lib/options.js';
import { run } from './program.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-completion-'));
  writeFileSync(join(folder, 'source.ts'), '');
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const FILE_LINE = ['migrate sou', 'migrate source.ts'] as const;

/** A line as far as the user has typed it, and the whole line. */
const LINES = [
  ['li', 'list'],
  ['release-', 'release-instance'],
  ['list --uns', 'list --uns'],
  ['list --unr', 'list --unresponsive'],
  ['list order: --so', 'list order: --sort'],
  ['list --sort ex', 'list --sort expires'],
  ['watch --limit 5 --sort h', 'watch --limit 5 --sort held'],
  ['release order:1 --if', 'release order:1 --if-holder'],
  ['show --if', 'show --if'],
  ['completion fi', 'completion fish'],
  FILE_LINE,
  ['migrate --dro', 'migrate --drop-in'],
  ['show sou', 'show sou'],
] as const;

const BASH = `
. ./script
for line; do
  read -ra COMP_WORDS <<< "nestjs-holdfast $line"
  COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 ))
  _nestjs_holdfast
  [ \${#COMPREPLY[@]} -eq 1 ] && COMP_WORDS[COMP_CWORD]=\${COMPREPLY[0]}
  echo "\${COMP_WORDS[*]:1}"
done`;

/** zsh completes in a terminal only. What was typed is printed by a key. */
const ZSH = `
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PROMPT=; autoload -Uz compinit; compinit -u -D; source ./script; unsetopt zle_bracketed_paste'
zpty -w z 'printed() { print -r -- "<<$BUFFER>>"; BUFFER= }; zle -N printed; bindkey ^X printed; print rea""dy'
zpty -r -m z out '*ready*'
for line; do
  zpty -w -n z "nestjs-holdfast $line"$'\\t\\x18'
  zpty -r -m z out '*<<*>>*'
  print -r -- \${\${out##*<<nestjs-holdfast }%%>>*}
done
zpty -d z`;

const FISH = `
source ./script
for line in $argv
  set words (string split ' ' $line)
  set found (complete -C "nestjs-holdfast $line" | string replace -r '\\t.*' '')
  test (count $found) -eq 1; and set words[-1] $found
  echo $words
end`;

/** The lines as a shell completes them. */
function completed(shell: string, driver: string, script: string): readonly string[] {
  writeFileSync(join(folder, 'script'), script);
  const lines = LINES.map(([typed]) => typed);
  const name = shell === 'fish' ? [] : [shell];
  const { stdout, stderr } = spawnSync(shell, ['-c', driver, ...name, ...lines], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, HOME: folder, TERM: 'xterm' },
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim());
}

describe.each([
  ['bash', BASH],
  ['zsh', ZSH],
  ['fish', FISH],
])('completion %s', (shell, driver) => {
  const isInstalled = spawnSync(shell, ['-c', 'true']).status === 0;

  (isInstalled ? it : it.skip)('completes commands, options and values', async () => {
    const { code, stdout, stderr } = await run(['completion', shell]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // In bash, readline completes names of files, which this driver does not run.
    const isLeft = (typed: string): boolean => shell === 'bash' && typed === FILE_LINE[0];
    expect(completed(shell, driver, stdout)).toEqual(
      LINES.map(([typed, whole]) => (isLeft(typed) ? typed : whole)),
    );
  });

  it('names every command, option and order', async () => {
    const { stdout } = await run(['completion', shell]);
    for (const command of COMMANDS) {
      expect(stdout).toContain(command.name);
      for (const option of optionsOf(command))
        expect(stdout).toMatch(new RegExp(`(--|-l )${option}\\b`));
    }
    expect(stdout).toContain(SORTS.join(' '));
  });
});

/** What is left of a script without the lines of commands, options and values. */
const frameOf = (script: string, lines: RegExp): string => script.replaceAll(lines, '');

describe('the script of', () => {
  const scriptOf = async (shell: string) => (await run(['completion', shell])).stdout;

  it('bash has a case for each command', async () => {
    const script = await scriptOf('bash');
    const names = COMMANDS.map(({ name }) => name);
    expect(frameOf(script, /^ {4}(?:'|-*\w).*;;\n/gm))
      .toBe(String.raw`# bash completion for nestjs-holdfast
_nestjs_holdfast() {
  local current=${'$'}{COMP_WORDS[COMP_CWORD]} previous=${'$'}{COMP_WORDS[COMP_CWORD-1]} command= word
  for word in "${'$'}{COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      ${names.join('|')}) command=$word; break ;;
    esac
  done
  COMPREPLY=()
  case $previous in
  esac
  local options= words=
  case $command in
  esac
  case $current in
    -*) words=$options ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _nestjs_holdfast nestjs-holdfast
`);
    expect(script).toContain(`
    --redis|--prefix|--limit|--interval|--reason|--if-holder|--by) return ;;
`);
    expect(script).toContain(`
    --sort) COMPREPLY=($(compgen -W 'waiting held key expires' -- "$current")); return ;;
`);
    expect(script).toContain(`
    '') options='--help --version' words='${names.join(' ')}' ;;
`);
    expect(script).toContain(`
    completion) options='--json --help --version' words='bash zsh fish' ;;
`);
  });

  it('zsh has a line and a case for each command', async () => {
    const script = await scriptOf('zsh');
    expect(frameOf(script, /^ {8}(?:'.*|\S+\) _arguments [^]*? ;;)\n/gm))
      .toBe(`#compdef nestjs-holdfast
_nestjs-holdfast() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands
      commands=(
      )
      _describe command commands ;;
    argument)
      case $words[1] in
      esac ;;
  esac
}
if [ "$funcstack[1]" = _nestjs-holdfast ]; then
  _nestjs-holdfast "$@"
else
  compdef _nestjs-holdfast nestjs-holdfast
fi
`);
    for (const { name, summary } of COMMANDS)
      expect(script).toContain(`        '${name}:${summary}'\n`);
    const last = String.raw`--json[Print one JSON document]' \
          '--help[Print this text]' \
          '--version[Print the version]`;
    expect(script).toContain(`
        completion) _arguments \\
          '${last}' \\
          '1:shell:(bash zsh fish)' ;;
`);
    const redis = String.raw`*--redis[The Redis to ask. Several\: independent masters. Default\: $REDIS_URL]:URL:' \
          '--cluster[The URLs are nodes of a Redis Cluster]' \
          '--prefix[The keyPrefix of the application. Default\: lock\:]:TEXT:`;
    expect(script).toContain(`
        show) _arguments \\
          '${redis}' \\
          '${last}' \\
          '1:key:( )' ;;
`);
    expect(script).toContain(`          '${last}' \\
          '*:paths:_files' ;;
`);
    // No word stands behind it.
    expect(script).toMatch(/ instances\) (?:.* \\\n)+ +'--version\[Print the version\]' ;;\n/);
    expect(script).toContain(
      String.raw`'--sort[Which come first\: waiting, held, key, expires. Default\: waiting]:ORDER:(waiting held key expires)'`,
    );
  });

  it('fish has a line for each command, word and option', async () => {
    const script = await scriptOf('fish');
    const behind = (...names: readonly string[]) =>
      `-n '__fish_seen_subcommand_from ${names.join(' ')}'`;
    const [title, ...lines] = script
      .split('\n')
      .map((line) => line.replace(/^complete -c nestjs-holdfast (?=-)/, ''));
    expect(title).toBe('# fish completion for nestjs-holdfast');
    expect(lines).toEqual([
      '-f',
      ...COMMANDS.map(({ name, summary }) => `-n __fish_use_subcommand -a ${name} -d '${summary}'`),
      `${behind('migrate')} -F`,
      `${behind('completion')} -a 'bash zsh fish'`,
      ...OPTION_NAMES.map((name) => expect.stringMatching(new RegExp(`-l ${name} .*-d '`))),
      '',
    ]);
    expect(lines).toEqual(
      expect.arrayContaining([
        `${behind('list', 'watch')} -l sort -x -a 'waiting held key expires' -d 'Which come first: waiting, held, key, expires. Default: waiting'`,
        `${behind('release', 'release-instance', 'forget')} -s y -l yes -d 'Do not ask before acting'`,
        "-l json -d 'Print one JSON document'",
        "-s v -l version -d 'Print the version'",
      ]),
    );
    expect(script.match(/^complete -c nestjs-holdfast -/gm)).toHaveLength(lines.length - 1);
  });

  it('a shell has texts that the shell takes as they are', () => {
    expect(quoted("it's $HOME")).toBe(String.raw`'it'\''s $HOME'`);
  });
});

describe('completion', () => {
  it('of a file is left to bash, which quotes names such as "y;id"', async () => {
    const { stdout } = await run(['completion', 'bash']);
    expect(stdout).toContain('-*) ;; *) compopt -o default 2>/dev/null; return ;;');
    expect(stdout).not.toContain('compgen -f');
  });

  it('needs a shell that it knows', async () => {
    expect(await run(['completion'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"completion" needs a shell: completion <shell>.'),
    });
    expect(await run(['completion', 'fis'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(
        'There is no completion for "fis". Did you mean "fish"? Shells are bash, zsh, fish.',
      ),
    });
  });
});
