/** How long to wait before something is tried again that failed. */
export interface BackOff {
  /** After the first failure. Doubled with each one. */
  readonly firstMs: number;
  readonly longestMs: number;
}

/** @param failures how many have come before the last one */
export const backOffMs = ({ firstMs, longestMs }: BackOff, failures: number): number =>
  Math.min(firstMs * 2 ** failures, longestMs);
