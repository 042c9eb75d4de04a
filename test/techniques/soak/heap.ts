import { setImmediate as nextTurn } from 'node:timers/promises';

/** Bytes that are still needed, in a process that was started with `--expose-gc`. */
export async function heapInUse(): Promise<number> {
  for (let turn = 0; turn < 5; turn += 1) {
    await nextTurn();
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}
