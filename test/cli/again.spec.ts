import { describe, expect, it } from '@jest/globals';
import { commandAgain } from '../../packages/cli/lib/again.js';
import type { GivenOptions } from '../../packages/cli/lib/options.js';
import type { Terminal } from '../../packages/cli/lib/terminal.js';

const again = (words: readonly string[], options: GivenOptions = {}, env: Terminal['env'] = {}) =>
  commandAgain({ options, terminal: { env } as Terminal }, words);

describe('the next command that the program prints', () => {
  it('is started as this one was', () => {
    expect(again(['show', 'a:1'])).toBe('nestjs-holdfast show a:1');
    expect(again(['show', 'a:1'], {}, { npm_command: 'exec' })).toBe(
      'npx @nestjs-holdfast/cli show a:1',
    );
    expect(again(['show', 'a:1'], {}, { npm_command: 'run-script' })).toBe(
      'nestjs-holdfast show a:1',
    );
  });

  it('names the same servers and keys, without a password', () => {
    const redis = ['redis://me:secret@one:6379', 'redis://two:6379'];
    expect(again(['show', 'a'], { redis, cluster: true, prefix: 'app:' })).toBe(
      "nestjs-holdfast show a --redis 'redis://***@one:6379' --redis redis://two:6379 --cluster --prefix app:",
    );
  });

  it.each([
    ['a $(reboot)', "'a $(reboot)'"],
    ["o'neill", String.raw`'o'\''neill'`],
    ['a;b', "'a;b'"],
    ['a\nb', String.raw`'a\u{a}b'`],
  ])('quotes what a shell would read otherwise: %j', (key, word) => {
    expect(again(['show', key])).toBe(`nestjs-holdfast show ${word}`);
  });
});
