import type * as Acorn from 'acorn';

/**
 * Loads acorn when a source is parsed for the first time, so that an import of the library does not take that time. An
 * `import()` would be asynchronous.
 */
const load = (): typeof Acorn =>
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import loads it at once, or asynchronously
  require('acorn') as typeof Acorn;

export = load;
