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

/** As `const { signal } = await locks.acquire(…)`: the code that is stopped by the signal still needs the lock. */
async function signalOf(key: string): Promise<AbortSignal> {
  return (await locks.acquire(key)).signal;
}

/** The signal is passed to a function that listens to it, and keeps no reference to it. */
async function listenTo(key: string): Promise<void> {
  (await signalOf(key)).addEventListener('abort', () => undefined);
}

const lost: string[] = [];
locks.on('lost', ({ keys, reason }) => lost.push(`${keys.join()}: ${reason}`));

let ended: (() => void) | undefined;

await forgetOne();
await releaseOne();
const signals = [await signalOf('by signal')];
await listenTo('by listener');
await signalOf('forgotten signal');
const remembered: Lock = await locks.acquire('remembered');
const section = locks.run('section', () => new Promise<void>((resolve) => (ended = resolve)));

const isHeld = async (key: string): Promise<boolean> => (await locks.inspect(key)).held;
const deadline = performance.now() + 15_000;
const isDevelopment = process.env.NODE_ENV === 'development';
const mayWait = mode !== 'keep' && (mode !== 'default' || isDevelopment);
do {
  globalThis.gc?.();
  await new Promise((resolve) => setTimeout(resolve, 20));
} while (
  mayWait &&
  ((await isHeld('forgotten')) || (await isHeld('forgotten signal'))) &&
  performance.now() < deadline
);
globalThis.gc?.();
await new Promise((resolve) => setTimeout(resolve, 50));

const held: string[] = [];
const KEYS = ['forgotten', 'forgotten signal', 'by signal', 'by listener'];
for (const key of [...KEYS, 'released', 'remembered', 'section'])
  if (await isHeld(key)) held.push(key);
console.log(JSON.stringify({ held, said, lost: lost.toSorted(), stillHere: signals.length }));
ended?.();
await section;
await remembered.release();
// The forgotten lock may be held yet.
await locks.shutdown(0);
