/** As in `package.json`. A bundled application could not read that file. */
export const VERSION = '0.1.0';
