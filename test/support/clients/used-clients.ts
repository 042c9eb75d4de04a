/** How often the library was given a client of the package that HOLDFAST_CLIENT names, and how often what the test gave. */
export interface UsedClients {
  made: number;
  given: number;
}

declare global {
  // `environment.mjs` reads it after each test.
  var holdfastUsedClients: UsedClients | undefined;
}

export const usedClients: UsedClients = (globalThis.holdfastUsedClients ??= { made: 0, given: 0 });
