/** After a full collection. Needs `--expose-gc`. */
export function heapUsed() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
