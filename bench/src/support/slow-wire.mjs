import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../wire.mjs', import.meta.url));

/** A way to a server on this machine on which each answer takes `delayMs` longer. Latency, not a limit of throughput. */
async function startSlowWire(targetPort, delayMs) {
  const child = fork(script, [String(targetPort), String(delayMs)]);
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const port = await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('The slow wire ended.')));
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      kill();
      await exited;
      process.off('exit', kill);
    },
  };
}

/** The URL to use instead of the server's own, for as long as `use` runs: Redis is so far away, each way. */
export async function through(redis, awayMs, use) {
  if (awayMs === undefined) return use(redis.url);
  const wire = await startSlowWire(redis.port, 2 * awayMs);
  try {
    return await use(wire.url);
  } finally {
    await wire.stop();
  }
}
