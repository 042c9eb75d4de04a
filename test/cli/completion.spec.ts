import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { COMMANDS } from '../../packages/cli/lib/commands.js';
import { optionsOf, SORTS } from '../../packages/cli/lib/options.js';
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
