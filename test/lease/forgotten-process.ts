/**
 * A process that forgets locks, run with --expose-gc. Prints what it logs and which keys are held in the end.
 * Argument: the option `forgottenLocks`, or `default`.
 */
import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { Lock } from '../../lib/lease/lock.js';
import { systemRuntime } from '../../lib/time/runtime.js';

const [mode = 'default'] = process.argv.slice(2);
const said: string[] = [];
const locks = new LockEngine(
  { store: 'memory', ...(mode !== 'default' && { forgottenLocks: mode as 'keep' }) },
  {
    runtime: systemRuntime,
    log: {
      warn: (message) => void said.push(message),
      error: (message) => void said.push(String(message)),
    },
  },
);
await locks.open();
said.length = 0; // in production, it warns of the store at the start

async function forgetOne(): Promise<void> {
  await locks.acquire('forgotten');
}

async function releaseOne(): Promise<void> {
  await (await locks.acquire('released')).release();
}

let ended: (() => void) | undefined;

await forgetOne();
await releaseOne();
const remembered: Lock = await locks.acquire('remembered');
const section = locks.run('section', () => new Promise<void>((resolve) => (ended = resolve)));

const isHeld = async (key: string): Promise<boolean> => (await locks.inspect(key)).held;
const deadline = performance.now() + 5_000;
const isDevelopment = process.env.NODE_ENV === 'development';
const mayWait = mode !== 'keep' && (mode !== 'default' || isDevelopment);
do {
  globalThis.gc?.();
  await new Promise((resolve) => setTimeout(resolve, 20));
} while (mayWait && (await isHeld('forgotten')) && performance.now() < deadline);
globalThis.gc?.();
await new Promise((resolve) => setTimeout(resolve, 50));

const held: string[] = [];
for (const key of ['forgotten', 'released', 'remembered', 'section'])
  if (await isHeld(key)) held.push(key);
console.log(JSON.stringify({ held, said }));
ended?.();
await section;
await remembered.release();
// The forgotten lock may be held yet.
await locks.shutdown(0);
