import { createHook } from 'node:async_hooks';
import { eventually } from './eventually.js';

const CLOSED_WITHIN_MS = 10_000;
const WATCHED = new Set(['Timeout', 'TCPWRAP', 'TCPSERVERWRAP', 'TLSWRAP', 'PROCESSWRAP']);

/** A watch over the timers, sockets, listening ports and child processes that are opened from its start on. */
export interface HandleWatch {
  /** Ends the watch, and rejects with what was opened, and where, if some of it still keeps this process alive. */
  expectNoneOpen(patience?: Patience): Promise<void>;
}

/** For how long it is waited until what is being closed is closed. Default: 10 s, for a busy machine. */
export interface Patience {
  readonly withinMs: number;
}

/** Runs `work` and rejects if it leaves a timer, a socket, a port or a child process open. */
export async function expectNoOpenHandles(
  work: () => Promise<unknown>,
  patience?: Patience,
): Promise<void> {
  const watch = watchHandles();
  try {
    await work();
  } finally {
    await watch.expectNoneOpen(patience);
  }
}

/**
 * Starts a watch, for checks that span several hooks. Unlike two counts by `process.getActiveResourcesInfo()`,
 * it is not misled by a handle of an earlier test that closes meanwhile.
 */
export function watchHandles(): HandleWatch {
  const open = new Map<number, { type: string; resource: object; origin: string }>();
  let watching = true;
  const hook = createHook({
    init(asyncId, type, _triggerAsyncId, resource) {
      if (!watching || !WATCHED.has(type)) return;
      const origin = callerOf(new Error().stack ?? '');
      if (!origin.includes('/jest-circus/')) open.set(asyncId, { type, resource, origin }); // its timeouts for tests
    },
    destroy(asyncId) {
      open.delete(asyncId);
    },
  }).enable();

  return {
    async expectNoneOpen(patience = { withinMs: CLOSED_WITHIN_MS }) {
      watching = false;
      // Node tells of a closed handle one turn of the event loop later, or two.
      await eventually(() => {
        const left = [...open.values()].filter(({ resource }) => keepsProcessAlive(resource));
        if (left.length === 0) return;
        const list = left.map(({ type, origin }) => `${type} opened ${origin}`);
        throw new Error(`Left open: ${list.join('; ')}`);
      }, patience).finally(() => hook.disable());
    },
  };
}

function keepsProcessAlive(resource: object): boolean {
  return (
    !('hasRef' in resource) || typeof resource.hasRef !== 'function' || resource.hasRef() === true
  );
}

/** The innermost frame that is neither of Node nor of this file. */
function callerOf(stack: string): string {
  const frames = stack.split('\n').slice(1);
  const caller = frames.find((frame) => !/node:|no-leaks\.ts/.test(frame));
  return caller?.trim() ?? 'by Node itself';
}
