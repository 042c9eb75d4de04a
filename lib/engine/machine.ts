import { hostname } from 'node:os';

/** Where this process runs, and what it is. */
export interface Machine {
  readonly host: string;
  readonly pid: number;
  readonly application: string;
  readonly version: string | undefined;
}

/** npm says what is started; `node main.js` says nothing. */
export const thisMachine = (): Machine => ({
  host: hostname(),
  pid: process.pid,
  application: process.env.npm_package_name ?? 'node',
  version: process.env.npm_package_version,
});
