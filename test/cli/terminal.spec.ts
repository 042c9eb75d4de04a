import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { compiledFile } from '../support/compiled.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { spawnProgram } from './program.js';

/** Of util-linux; that of macOS and BSD takes other arguments. */
const SCRIPT = '/usr/bin/script';
const inTerminal = process.platform === 'linux' && existsSync(SCRIPT) ? describe : describe.skip;

let server: RedisServer;
let locks: Locks;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  await locks.shutdown(0);
  await server.command('FLUSHALL');
});

afterAll(async () => {
  await server.stop();
});

/** The program in a terminal of 60 columns and 8 rows. */
class InTerminal {
  output = '';
  readonly ended: Promise<number | null>;
  readonly #process;
  #onOutput: () => void = () => undefined;

  constructor(...args: readonly string[]) {
    const main = compiledFile(new URL('../../packages/cli/lib/main.ts', import.meta.url));
    const quoted = [process.execPath, main, ...args].map((each) => `'${each}'`).join(' ');
    const command = `stty cols 60 rows 8; exec ${quoted}`;
    this.#process = spawn(SCRIPT, ['-qfec', command, '/dev/null'], {
      env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: server.url, TERM: 'xterm', NO_COLOR: '' },
    });
    this.#process.stdout.on('data', (bytes: Buffer) => {
      this.output += bytes.toString();
      this.#onOutput();
    });
    this.ended = new Promise((resolve) => this.#process.once('close', resolve));
  }

  /** Resolves when a text has been printed. */
  async prints(text: string): Promise<void> {
    while (!this.output.includes(text))
      await new Promise<void>((resolve) => (this.#onOutput = resolve));
  }

  types(text: string): void {
    this.#process.stdin.write(text);
  }
}

inTerminal('in a terminal', () => {
  it.each(['q', '\x03'])(
    'watch is drawn in its size, and %j ends it with the screen restored',
    async (key) => {
      locks = new Locks({ redis: server.url });
      await locks.acquire(`order:${'9'.repeat(80)}`);
      const watch = new InTerminal('watch', '--interval', '100ms');
      await watch.prints('order:9');
      await locks.acquire('order:42');
      await watch.prints('order:42');
      watch.types(key);
      expect(await watch.ended).toBe(0);
      expect(watch.output.startsWith('\x1b[?1049h\x1b[?25l')).toBe(true);
      expect(watch.output.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
      const frame = watch.output.split('\x1b[H').at(-1)!;
      expect(frame.split('\r\n').length).toBeLessThanOrEqual(8);
      expect(frame).toContain('\x1b[1mSTATE');
      expect(frame).toContain('9…');
    },
  );

  it('release asks, and does nothing on Ctrl-C', async () => {
    locks = new Locks({ redis: server.url });
    const lock = await locks.acquire('order:42');
    const no = new InTerminal('release', 'order:42', '--reason', 'stuck');
    await no.prints('[y/N]');
    no.types('\x03');
    expect(await no.ended).toBe(5);
    expect(lock.isHeld).toBe(true);
    const yes = new InTerminal('release', 'order:42', '--reason', 'stuck');
    await yes.prints('[y/N]');
    yes.types('y\r');
    expect(await yes.ended).toBe(0);
    expect(await locks.inspect('order:42')).toEqual({ held: false });
  });
});

describe('without a terminal', () => {
  it('a reader that has seen enough is no error, and SIGTERM ends a watch in order', async () => {
    locks = new Locks({ redis: server.url });
    await locks.acquire('order:42');
    const child = spawnProgram(['watch', '--json', '--interval', '100ms'], {
      REDIS_URL: server.url,
    });
    let errors = '';
    child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
    const ended = new Promise((resolve) => child.once('close', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);

    const cut = spawnProgram(['watch', '--json', '--interval', '100ms'], { REDIS_URL: server.url });
    cut.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
    const over = new Promise((resolve) => cut.once('exit', resolve));
    await new Promise((resolve) => cut.stdout.once('data', resolve));
    cut.stdout.destroy();
    expect(await over).toBe(0);
    expect(errors).toBe('');
  });
});
