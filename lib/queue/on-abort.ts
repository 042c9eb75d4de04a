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

function watch(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>();
  listenersOf.set(signal, listeners);
  signal.addEventListener('abort', tellAll, { once: true });
  return listeners;
}

function tellAll(this: AbortSignal): void {
  for (const listener of listenersOf.get(this) ?? []) listener();
}
