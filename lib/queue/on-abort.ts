import type { Scheduler } from '../time/scheduler.js';

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `listener` once `signal` aborts; returns how to be called no more. However many wait with one signal, it gets one listener
 * of ours: Node warns of a leak from the eleventh on.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listeners = listenersOf.get(signal) ?? watch(signal);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || listenersOf.get(signal) !== listeners) return;
    listenersOf.delete(signal);
    signal.removeEventListener('abort', tellAll);
  };
}

/** A signal that aborts with others for as long as it is linked to them. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Call it when no listener is left. */
  unlink(): void;
}

/**
 * Aborts with the first of `signals`, and with its reason. It replaces `AbortSignal.any` for calls that are given a
 * signal which outlives them. In Node 20 `AbortSignal.any` keeps a reference for each call, for as long as the signal
 * lives.
 */
export function anyOf(signals: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const { signal } = controller;
  const links = signals.map((source) => {
    const follow = (): void => {
      controller.abort(source.reason);
    };
    if (source.aborted) follow();
    return onAbort(source, follow);
  });
  return {
    signal,
    unlink: () => {
      for (const ignore of links) ignore();
    },
  };
}

/** Resolves after this time, or as soon as the signal aborts. */
export function pause(scheduler: Scheduler, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      task.cancel();
      ignore();
      resolve();
    };
    const task = scheduler.schedule(ms, over);
    const ignore = onAbort(signal, over);
    if (signal.aborted) over();
  });
}

/** Settles as the work does, or resolves with `undefined` as soon as the signal aborts. */
export async function endOf<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let ignore = (): void => undefined;
  const aborted = new Promise<undefined>((resolve) => {
    const over = (): void => {
      resolve(undefined);
    };
    ignore = onAbort(signal, over);
    if (signal.aborted) over();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    ignore();
  }
}

function watch(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>();
  listenersOf.set(signal, listeners);
  signal.addEventListener('abort', tellAll, { once: true });
  return listeners;
}

function tellAll(this: AbortSignal): void {
  for (const listener of listenersOf.get(this) ?? []) listener();
}
