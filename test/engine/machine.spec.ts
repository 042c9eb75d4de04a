import { hostname } from 'node:os';
import { afterAll, describe, expect, it } from '@jest/globals';
import { thisMachine } from '../../lib/engine/machine.js';

const { npm_package_name: name, npm_package_version: version } = process.env;

function set(variable: string, value: string | undefined): void {
  if (value === undefined) Reflect.deleteProperty(process.env, variable);
  else process.env[variable] = value;
}

afterAll(() => {
  set('npm_package_name', name);
  set('npm_package_version', version);
});

describe('a process', () => {
  const here = { host: hostname(), pid: process.pid };

  it.each([
    ['the package that npm starts', 'shop', '1.4.2', { application: 'shop', version: '1.4.2' }],
    ['node, where it is started without npm', undefined, undefined, { application: 'node' }],
  ])('is known as %s', (_, packageName, packageVersion, expected) => {
    set('npm_package_name', packageName);
    set('npm_package_version', packageVersion);
    expect(thisMachine()).toEqual({ ...here, ...expected });
  });
});
