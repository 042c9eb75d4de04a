import { readFileSync } from 'node:fs';
import { COMMANDS } from '../../packages/cli/lib/commands.js';
import { describe, expect, it } from '@jest/globals';
import { OPTION_NAMES } from '../../packages/cli/lib/options.js';
import { readArguments } from '../../packages/cli/lib/arguments.js';
import { intervalIn } from '../../packages/cli/lib/values.js';
import { check } from '../../packages/cli/lib/run.js';
import { brokenLinksIn } from '../claims/docs/links.js';
import { run, wordsOf } from './program.js';

const NOBODY = 'redis://127.0.0.1:1';

describe('the command line', () => {
  it('is a command, a word and options in any order', () => {
    expect(
      readArguments(['--redis', 'redis://a', 'show', '--json', 'order:42', '--redis=redis://b']),
    ).toEqual({
      words: ['show', 'order:42'],
      options: { redis: ['redis://a', 'redis://b'], json: true },
    });
    expect(readArguments(['show', '--', '--odd-key']).words).toEqual(['show', '--odd-key']);
    expect(readArguments(['release', '-y', '--reason=-']).options).toEqual({
      yes: true,
      reason: '-',
    });
    for (const empty of [['--prefix', ''], ['--prefix=']])
      expect(readArguments(['list', ...empty]).options).toEqual({ prefix: '' });
  });

  it.each([
    ['100ms', 100],
    ['1.25s', 1_250],
    ['2s', 2_000],
    ['2m', 120_000],
    ['60min', 3_600_000],
  ])('takes %s for an interval of %d ms', (text, ms) => {
    expect(intervalIn(text)).toBe(ms);
  });

  it('takes an interval of 2 s if none is given', () => {
    expect(intervalIn()).toBe(2_000);
  });

  it.each([
    [['lst'], 'There is no command "lst". Did you mean "list"?'],
    [['xyz'], 'There is no command "xyz". Commands are list, show'],
    [['list', '--jsn'], 'There is no option --jsn. Did you mean "--json"?'],
    [['list', '--verbosely'], 'There is no option --verbosely.\n'],
    [['release', 'a', '--holder', 'x'], 'no option --holder. Did you mean "--if-holder"?'],
    [['list', '-x'], 'There is no option -x.\n'],
    [['list', '--json=yes'], 'Option --json takes no value.'],
    [['release', 'a', '--reason', '--yes'], 'Option --reason needs a value: --reason TEXT.'],
    [['release', 'a', '--reason'], 'Option --reason needs a value'],
    [['release', 'a', '--reason='], 'Option --reason needs a value'],
    [['release', 'a', '--by', 'x', '--by', 'y'], 'Option --by was given twice.'],
    [
      ['list', '--reason', 'x'],
      '"list" takes no option --reason. Its options are --unresponsive, --detached, --failed, --sort, --limit, --redis',
    ],
    [['show'], '"show" needs a key: show <key>.'],
    [
      ['show', 'a', 'b'],
      '"show" takes one key, and "b" is one too many. Put a text with spaces in quotes.',
    ],
    [['instances', 'a'], '"instances" takes nothing, and "a" is one too many.\n'],
    [
      ['list'],
      'Which Redis? Give --redis redis://localhost:6379, or set REDIS_URL. There is no default.',
    ],
    [
      ['list', '--redis', 'localhost:6379'],
      '--redis must be a URL such as redis://localhost:6379, received "localhost:6379".',
    ],
    [
      ['list', '--redis', NOBODY, '--limit', '0'],
      'Option --limit must be a whole number from 1 on, received "0".',
    ],
    ...['ten', '-', '5.0', '0x10', '1e3', '9007199254740993'].map((limit): [string[], string] => [
      ['list', '--redis', NOBODY, `--limit=${limit}`],
      `received "${limit}"`,
    ]),
    [['migrate', 'nowhere', 'elsewhere'], 'There is no file and no folder "nowhere".'],
    ...['list', 'watch'].map((command): [string[], string] => [
      [command, '--redis', NOBODY, '--sort', 'wait'],
      'Option --sort must be one of waiting, held, key, expires, received "wait". Did you mean "waiting"?',
    ]),
    [['top', '--sort', 'key'], '"top" takes no option --sort'],
    [
      ['watch', '--redis', NOBODY, '--interval', '2'],
      'Option --interval must be a time from 100ms to 60min with its unit, such as 500ms or 2s, received "2".',
    ],
    ...[
      '1ms',
      '99ms',
      '61min',
      '3600.5s',
      '1.5 s',
      's',
      'x1s',
      '1sx',
      '1h',
      '.5s',
      '1.s',
      '1.xs',
    ].map((interval): [string[], string] => [
      ['watch', '--redis', NOBODY, '--interval', interval],
      `received "${interval}"`,
    ]),
    [['release', 'a', '--redis', NOBODY], '"release" needs --reason: holders are notified'],
    [['show', 'a{b', '--redis', NOBODY], 'contains a brace'],
    [['show', 'a\x1bb', '--redis', NOBODY], 'contains a control character'],
    [['list', '--redis', `${NOBODY}/3`, '--cluster'], 'A Cluster has database 0 only'],
    [['list', '--redis', NOBODY, '--prefix'], 'Option --prefix needs a value: --prefix TEXT.'],
    [['list', '--redis', NOBODY, '--prefix', '--json'], 'Option --prefix needs a value'],
    [['list', '--redis='], 'Option --redis needs a value'],
  ])('%j is refused with what to do', async (args, problem) => {
    const { code, stdout, stderr } = await run(args);
    expect(stderr).toContain(`error: `);
    expect(stderr).toContain(problem);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('never shows a password', async () => {
    for (const url of [
      'redis://:topsecret@127.0.0.1:1',
      'topsecret@host',
      'redis://a:topsecret@h:99999',
      'http://me:topsecret@host',
    ]) {
      for (const cluster of [[], ['--cluster']]) {
        const { code, stdout, stderr } = await run(['list', '--redis', url, ...cluster]);
        expect([2, 3]).toContain(code);
        expect(stdout + stderr).not.toContain('topsecret');
      }
    }
  });

  it('has help for the program and for each command', async () => {
    const { stdout } = await run(['--help']);
    const names = [...stdout.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name]) => name);
    expect(names).toEqual([
      'list',
      'show',
      'watch',
      'top',
      'instances',
      'audit',
      'release',
      'release-instance',
      'forget',
      'doctor',
      'migrate',
      'completion',
    ]);
    for (const name of names) {
      const help = await run([name!, '--help']);
      expect(help).toMatchObject({ code: 0, stderr: '' });
      expect(help.stdout).toContain(`Usage: nestjs-holdfast ${name}`);
      expect((await run(['help', name!])).stdout).toBe(help.stdout);
    }
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(120);
    expect(await run([])).toMatchObject({ code: 2, stdout: '', stderr: stdout });
    expect(await run(['-v'])).toMatchObject({ code: 0, stdout: '1.2.3\n' });
  });

  it.each([
    ['list', 'list [start-of-keys]'],
    ['show', 'show <key>'],
    ['instances', 'instances'],
    ['migrate', 'migrate [paths…]'],
    ['completion', 'completion <shell>'],
  ])('says how %s is written', async (name, usage) => {
    const [help, all] = [await run([name, '--help']), await run(['--help'])];
    expect(help.stdout).toContain(`\n\nUsage: nestjs-holdfast ${usage} [options]\n\nOptions\n`);
    expect(all.stdout.split(/\n {2}| {2,}/)).toContain(usage);
  });

  it('aligns the options in the help of a command', async () => {
    const lines = (await run(['migrate', '--help'])).stdout.split('\n');
    expect(lines.slice(lines.indexOf('Options'), lines.indexOf('Examples'))).toEqual([
      ...['Options', '  -n, --dry-run  Print what would be done, and change nothing'],
      '      --drop-in  Keep the calls of redlock: change its import only',
      ...['      --json     Print one JSON document', '  -h, --help     Print this text'],
      ...['  -v, --version  Print the version', ''],
    ]);
    expect((await run(['list', '--help'])).stdout).toMatch(
      /\n {6}--sort ORDER +Which come first: .*\n {6}--limit N +Print at most N rows\n/,
    );
  });

  it('has one paragraph for each group of commands', async () => {
    const { stdout } = await run(['--help'], { env: { npm_command: 'exec' } });
    const titles = stdout.split('\n\n').map((paragraph) => paragraph.split('\n')[0]);
    expect(titles).toEqual([
      'Who holds which lock, since when, who waits, and how to free it.',
      'Usage: npx @nestjs-holdfast/cli <command> [options]',
      ...['Look', 'Act', 'Check', 'Move', 'Shell', 'Options of every command'],
      'The options of one command: npx @nestjs-holdfast/cli <command> --help',
      expect.stringMatching(/^More: https:/),
    ]);
  });

  describe.each(COMMANDS)('the help of $name', (command) => {
    it('ends with the address of its section', async () => {
      const { stdout } = await run([command.name, '--help']);
      const [, page = '', anchor = ''] = /\nMore: (\S+)#(\S+)\n$/.exec(stdout) ?? [];
      expect(page).toBe('https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/cli.md');
      expect(brokenLinksIn('docs/cli.md', `[here](cli.md#${anchor})`, '.')).toEqual([]);
      expect(brokenLinksIn('docs/cli.md', '[here](cli.md#nowhere)', '.')).toHaveLength(1);
    });

    it('has two or three examples, which the program accepts', async () => {
      const { stdout } = await run([command.name, '--help']);
      const lines = [...stdout.matchAll(/^ {2}# .+\n {2}nestjs-holdfast (.+?)(?: >.*)?$/gm)].map(
        ([, line = '']) => line,
      );
      expect([2, 3]).toContain(lines.length);
      for (const line of lines) {
        const words = wordsOf(line);
        expect(words[0]).toBe(command.name);
        const given = readArguments(words);
        expect(() => check(command, given)).not.toThrow();
      }
    });
  });

  it('is documented: each command with its options', async () => {
    const page = readFileSync('docs/cli.md', 'utf8');
    const rows = [...page.matchAll(/^\| `([a-z][a-z-]*)(?: [[<][^`]*)?` .*\|([^|]*)\|$/gm)].map(
      ([, name, cell = '']) => [name, Array.from(cell.matchAll(/`--([a-z-]+)`/g), ([, o]) => o)],
    );
    for (const { name, options } of COMMANDS) expect(rows).toContainEqual([name, options]);
    for (const option of OPTION_NAMES) expect(page).toContain(`--${option}`);
  });
});
