import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ensureRedisServer } from '../../../scripts/redis-server.mjs';

const STARTS_WITHIN_MS = 15_000;

let program;

/** A Redis of our own that writes nothing to the disk, on a free port unless one is named. */
export async function startRedis(port) {
  program ??= ensureRedisServer(() => undefined);
  port ??= await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const settings = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder };
  const child = spawn(
    program,
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await ready(child);
  const url = `redis://127.0.0.1:${port}`;
  const admin = new Redis(url);
  const version = /redis_version:(\S+)/.exec(await admin.info('server'))?.[1];
  return {
    url,
    port,
    version,
    admin,
    flush: () => admin.flushall(),
    /** It accepts connections, and does not reply. */
    freeze: () => child.kill('SIGSTOP'),
    async stop() {
      admin.disconnect();
      const exited = new Promise((resolve) => child.once('exit', resolve));
      kill();
      await exited;
      process.off('exit', kill);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Of each command, those in scripts too: how often it ran, and for how many µs. */
export async function commandStats(admin) {
  const info = await admin.info('commandstats');
  const lines = info.matchAll(/cmdstat_(\S+?):calls=(\d+),usec=(\d+)/g);
  return Object.fromEntries(
    Array.from(lines, ([, name, calls, us]) => [name, { calls: Number(calls), us: Number(us) }]),
  );
}

function ready(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    const tooLate = setTimeout(() => {
      child.kill('SIGKILL');
    }, STARTS_WITHIN_MS);
    const failed = () => {
      clearTimeout(tooLate);
      reject(new Error(`The Redis server did not start:\n${output}`));
    };
    child.once('error', failed);
    child.once('exit', failed);
    child.stdout.on('data', (chunk) => {
      output = (output + chunk).slice(-10_000);
      if (!output.includes('Ready to accept connections')) return;
      clearTimeout(tooLate);
      child.off('exit', failed);
      resolve();
    });
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => {
        resolve(port);
      });
    });
  });
}
