import { describe, expect, it } from '@jest/globals';
import type { InstanceInfo } from '../../lib/admin/lock-admin.types.js';
import { LockStoreUnavailableError } from '../../lib/errors.js';
import { live, type Look } from '../../packages/cli/lib/live.js';
import { contextWith, instance, type Settings } from './fake-admin.js';

const look = (isEmpty: boolean, ...lines: readonly string[]): Look => ({
  ...{ isEmpty, facts: { lines }, draw: () => lines },
});
const AWAY = new LockStoreUnavailableError({
  ...{ operation: 'list', keys: [] },
  nodes: [{ node: 'one', kind: 'connection', message: 'ECONNREFUSED' }],
});

/** Looks at these things, one after the other. */
function looking(looks: readonly (Look | Error)[], settings: Settings) {
  let services: readonly InstanceInfo[] = [];
  const made = contextWith({ instances: async () => services }, settings);
  const { context, terminal } = made;
  const left = [...looks];
  const ended = live(context, async () => {
    const next = left.shift() ?? look(false);
    if (next instanceof Error) throw next;
    return next;
  });
  const frames = (): readonly (readonly string[])[] =>
    terminal.stdout
      .split('\x1b[H')
      .slice(1)
      .map((frame) => (frame.split('\x1b[J')[0] ?? '').replaceAll('\x1b[K', '').split('\r\n'));
  const report = (...all: readonly InstanceInfo[]): void => {
    services = all;
  };
  return { ...made, ended, frames, report };
}

const HEAD = 'Redis at nowhere   q ends';
const HINT = 'No service reports here: another server, database or prefix?';

describe('a picture that is redrawn', () => {
  it('begins with an outage, if there is one, and goes on after it', async () => {
    const looks = [AWAY, look(false, 'one'), AWAY, look(false, 'two')];
    const { frames, runtime, terminal, ended } = looking(looks, { isTty: true });
    await runtime.advance(6_000);
    const problem = AWAY.detail;
    expect(frames()).toEqual([
      [HEAD, problem],
      [HEAD, '', 'one'],
      [HEAD, problem, 'one'],
      [HEAD, '', 'two'],
    ]);
    terminal.press('q');
    expect([await ended, terminal.listeners, runtime.timers]).toEqual([0, 0, 0]);
  });

  it('has a hint while it is empty and no service reports, for which it searches once', async () => {
    const looks = [look(true, 'none'), look(true, 'none'), look(true, 'none'), look(true, 'none')];
    const { frames, runtime, terminal, report, searches, ended } = looking(looks, { isTty: true });
    await runtime.advance(2_000);
    report(instance());
    await runtime.advance(2_000);
    report();
    await runtime.advance(2_000);
    expect(frames()).toEqual([
      [HEAD, '', 'none', HINT],
      [HEAD, '', 'none', HINT],
      [HEAD, '', 'none'],
      [HEAD, '', 'none', HINT],
    ]);
    expect(searches).toHaveLength(2);
    terminal.press('\x03');
    expect(await ended).toBe(0);
  });

  it('has no hint where something is found', async () => {
    const looks = [look(true, 'none'), look(false, 'one'), look(true, 'none')];
    const { frames, runtime, terminal, ended } = looking(looks, { isTty: true });
    await runtime.advance(4_000);
    expect(frames().map((lines) => lines.slice(2))).toEqual([
      ...[['none', HINT], ['one'], ['none', HINT]],
    ]);
    terminal.stop();
    expect(await ended).toBe(0);
  });

  it('is not drawn any more when the user ends it during a look', async () => {
    const { context, terminal, runtime } = contextWith({}, { isTty: true });
    const code = await live(context, async () => {
      terminal.press('Q');
      return look(false, 'late');
    });
    expect([code, terminal.stdout, runtime.timers]).toEqual([
      ...[0, '\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l', 0],
    ]);
  });

  it('ends with an error that is none of Redis, and restores the screen', async () => {
    const { ended, terminal } = looking([new TypeError('planted')], { isTty: true });
    await expect(ended).rejects.toThrow('planted');
    expect(terminal.stdout).toBe('\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l');
    expect(terminal.listeners).toBe(0);
  });
});

describe('one look', () => {
  it.each([true, false])('is one document with --json, on a terminal, too: %j', async (isTty) => {
    const settings = { isTty, options: { json: true } };
    const { ended, terminal } = looking([look(false, 'one')], settings);
    expect([await ended, terminal.stdout, terminal.stderr]).toEqual([0, '{"lines":["one"]}\n', '']);
  });

  it('is a text in a pipe', async () => {
    const { ended, terminal } = looking([look(false, 'one')], {});
    expect([await ended, terminal.stdout, terminal.stderr]).toEqual([
      ...[0, 'one\n', 'Redis at nowhere\n'],
    ]);
  });

  it('follows the other with an interval, and the hint comes once', async () => {
    const looks = [look(true, 'none'), look(true, 'none'), look(false, 'one')];
    const options = { interval: '1s' };
    const { ended, terminal, runtime } = looking(looks, { options });
    await runtime.advance(2_000);
    terminal.stop();
    expect([await ended, terminal.stdout, terminal.stderr]).toEqual([
      ...[0, 'none\nnone\none\n', `${HINT}\n`],
    ]);
  });
});
