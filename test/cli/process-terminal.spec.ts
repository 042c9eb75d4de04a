import type { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { start } from '../../packages/cli/lib/start.js';
import { processTerminal, type Terminal } from '../../packages/cli/lib/terminal.js';

/** A standard stream, with what a terminal has. */
class Stream extends PassThrough {
  isTTY = false;
  columns = 0;
  rows = 0;
  readonly isRaw: boolean[] = [];
  text = '';

  constructor() {
    super();
    this.on('data', (bytes: Buffer) => (this.text += bytes.toString()));
  }

  setRawMode(isRaw: boolean): this {
    this.isRaw.push(isRaw);
    return this;
  }
}

const { warn } = console;
const { argv, exitCode } = process;

afterEach(() => {
  jest.restoreAllMocks();
  Object.assign(console, { warn });
  process.argv = argv;
  process.exitCode = exitCode;
});

/** Streams that this process has for the time of a test. */
function streams(settings: Partial<Record<'stdin' | 'stdout' | 'stderr', object>> = {}) {
  const given = (name: 'stdin' | 'stdout' | 'stderr'): Stream => {
    const stream = Object.assign(name === 'stdin' ? input() : new Stream(), settings[name]);
    jest.spyOn(process, name, 'get').mockReturnValue(stream as never);
    return stream;
  };
  return { stdin: given('stdin'), stdout: given('stdout'), stderr: given('stderr') };
}

/** Without a reader: the terminal reads it. */
function input(): Stream {
  const stream = new Stream();
  stream.removeAllListeners('data');
  stream.pause();
  return stream;
}

const TTY = { isTTY: true };

describe('the terminal of the process', () => {
  it.each([
    [TTY, TTY, true],
    [TTY, {}, false],
    [{}, TTY, false],
  ])('can ask where it reads and notes: %j, %j', (stdin, stderr, canAsk) => {
    streams({ stdin, stderr });
    expect(processTerminal()).toMatchObject({ canAsk, isTty: false });
  });

  it('has the size of its window', () => {
    streams({ stdout: { ...TTY, columns: 132, rows: 50 } });
    expect(processTerminal()).toMatchObject({ isTty: true });
    expect(processTerminal().size()).toEqual({ columns: 132, rows: 50 });
  });

  it('has 80 columns and 24 rows where none are known', () => {
    streams({ stdout: TTY });
    expect(processTerminal().size()).toEqual({ columns: 80, rows: 24 });
  });

  it.each([
    [{}, Infinity],
    [{ COLUMNS: '60' }, 60],
    [{ COLUMNS: 'x' }, Infinity],
  ])('has the columns of the environment in a pipe: %j', (env, columns) => {
    streams({ stdout: { columns: 132, rows: 50 } });
    jest.replaceProperty(process, 'env', env);
    expect(processTerminal().size()).toEqual({ columns, rows: Infinity });
  });

  it('writes results, and everything else where no pipe gets it', () => {
    const { stdout, stderr } = streams();
    const terminal = processTerminal();
    terminal.write('a');
    terminal.note('b');
    expect([stdout.text, stderr.text]).toEqual(['a', 'b']);
  });

  describe('asks', () => {
    /** What is answered when the question stands there. */
    async function answered(act: (stdin: Stream) => void): Promise<readonly [string, string]> {
      const { stdin, stderr } = streams();
      const isAsked = new Promise((resolve) => stderr.once('data', resolve));
      const answer = processTerminal().ask('Release a? [y/N] ');
      await isAsked;
      act(stdin);
      const text = await answer;
      expect(stdin.isPaused()).toBe(true);
      return [text, stderr.text];
    }

    it('with the question beside the results, and reads a line', async () => {
      expect(await answered((stdin) => stdin.write('yes\nno\n'))).toEqual([
        'yes',
        'Release a? [y/N] ',
      ]);
    });

    it('and takes the end of its input for no answer', async () => {
      expect((await answered((stdin) => stdin.end()))[0]).toBe('');
    });
  });

  it('hears keys without Enter, until that ends', () => {
    const { stdin } = streams({ stdin: TTY });
    const keys: string[] = [];
    const stop = processTerminal().onKey((key) => keys.push(key));
    stdin.emit('data', Buffer.from('q'));
    expect([stdin.isRaw, stdin.isPaused()]).toEqual([[true], false]);
    stop();
    stdin.emit('data', Buffer.from('x'));
    expect([keys, stdin.isRaw, stdin.isPaused()]).toEqual([['q'], [true, false], true]);
  });

  it('leaves an input alone that is no terminal', () => {
    const { stdin } = streams();
    processTerminal().onKey(() => undefined)();
    expect([stdin.isRaw, stdin.listenerCount('data')]).toEqual([[], 0]);
  });

  it.each<[string, (terminal: Terminal, listener: () => void) => () => void, string]>([
    ['a new size', (terminal, listener) => terminal.onResize(listener), 'resize'],
    ['an output that is closed', (terminal, listener) => terminal.onStop(listener), 'error'],
  ])('reports %s, until that ends', (_, listen, event) => {
    const { stdout } = streams();
    let heard = 0;
    const stop = listen(processTerminal(), () => (heard += 1));
    stdout.emit(event);
    expect(heard).toBe(1);
    stop();
    listen(processTerminal(), () => (heard += 1))();
    expect(stdout.listenerCount(event)).toBe(0);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('reports %s, until that ends', (signal) => {
    streams();
    const emitter: EventEmitter = process;
    const before = emitter.listenerCount(signal);
    let heard = 0;
    const stop = processTerminal().onStop(() => (heard += 1));
    expect(emitter.listenerCount(signal)).toBe(before + 1);
    emitter.listeners(signal).at(-1)?.();
    expect(heard).toBe(1);
    stop();
    expect(emitter.listenerCount(signal)).toBe(before);
  });
});

describe('the program', () => {
  /** As it is started with these words. */
  async function started(...words: readonly string[]) {
    const used = streams();
    jest.replaceProperty(process, 'env', {});
    process.argv = ['node', 'nestjs-holdfast', ...words];
    await start();
    return { ...used, code: process.exitCode };
  }

  it('takes what stands behind its name, and leaves its exit code', async () => {
    const help = await started('help', 'show');
    expect([help.code, help.stderr.text]).toEqual([0, '']);
    expect(help.stdout.text).toContain('Usage: nestjs-holdfast show <key>');
    const wrong = await started('lst');
    expect([wrong.code, wrong.stdout.text]).toEqual([2, '']);
    expect(wrong.stderr.text).toContain('Did you mean "list"?');
  });

  it('knows its version', async () => {
    expect((await started('--version')).stdout.text).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('takes a reader that has seen enough for no error', async () => {
    const { stdout, stderr } = await started('--version');
    expect(() => stdout.emit('error', new Error('EPIPE'))).not.toThrow();
    expect(() => stderr.emit('error', new Error('EPIPE'))).not.toThrow();
  });

  it('keeps the hints of a client from the terminal', async () => {
    const { stderr, stdout } = await started('--version');
    const before = [stderr.text, stdout.text];
    expect(console.warn).not.toBe(warn);
    console.warn('hint');
    expect([stderr.text, stdout.text]).toEqual(before);
  });
});
