/** How much there is in a world. Each list is drawn from. */
export interface Size {
  readonly processes: readonly number[];
  /** Of each process. */
  readonly callers: readonly number[];
  /** Of each caller, at the most. */
  readonly operations: number;
  /** At the most. */
  readonly faults: number;
  readonly servers: readonly number[];
  readonly lengthsMs: readonly number[];
  /** Whether some worlds are made for what many callers do: a crowd, callers who stay, a staged case. */
  readonly hasMany: boolean;
}

export type SizeName = 'usual' | 'small';

/** Small worlds are played many times as fast; what needs many callers, or a long time, does not come about in them. */
export const SIZES: Readonly<Record<SizeName, Size>> = {
  usual: {
    processes: [2, 2, 3, 3, 4],
    callers: [1, 2, 3],
    operations: 6,
    faults: 8,
    servers: [3, 3, 3, 3, 5, 2],
    lengthsMs: [500, 2_000, 6_000],
    hasMany: true,
  },
  small: {
    processes: [2, 2, 2, 3],
    callers: [1],
    operations: 2,
    faults: 2,
    servers: [3],
    lengthsMs: [200, 500],
    hasMany: false,
  },
};
