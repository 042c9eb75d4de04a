import type * as Acorn from 'acorn';

/** The parser, read when the first source is: most processes import the library long before, or never lock by a parameter's name. */
const load = (): typeof Acorn =>
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import cannot wait
  require('acorn') as typeof Acorn;

export = load;
