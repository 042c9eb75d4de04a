import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../wire.mjs', import.meta.url));

/** Round trips through a network: 0.5 ms and 2 ms each way. */
export const FAR_MS = [1, 4];

/** For the title of a scenario. */
export const far = (awayMs) => (awayMs === 0 ? '' : `, Redis ${awayMs / 2} ms away`);

/** A way to a server on this machine on which each answer takes `delayMs` longer. Latency, not a limit of throughput. */
export async function startSlowWire(targetPort, delayMs) {
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

/** The URL to use instead of the server's own, for as long as `use` runs. */
export async function through(redis, delayMs, use) {
  if (delayMs === 0) return use(redis.url);
  const wire = await startSlowWire(redis.port, delayMs);
  try {
    return await use(wire.url);
  } finally {
    await wire.stop();
  }
}
