/** What is said of a lock for as long as it is held. */
export interface HoldingOptions {
  readonly autoExtend: boolean;
  readonly maxHoldMs: number;
  /** For so long after it was acquired the keys stay taken, whenever it ends. */
  readonly minHoldMs: number;
  readonly release: 'when-done' | 'on-expiry';
}
