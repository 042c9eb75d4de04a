/** A copy of a project with other texts in some of its files. */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const CONFIG = `import config from './jest.config.js';
const { testSequencer, coverageThreshold, globalSetup, ...others } = config;
export default {
  ...others,
  ...(process.env.MUTATION_TASK && {
    testRunner: ${JSON.stringify(fileURLToPath(new URL('runner.mjs', import.meta.url)))},
  }),
  testTimeout: 20_000,
};
`;

const COMPILE = `import { compiledProject } from './scripts/compile.mjs';
process.stdout.write(compiledProject());
`;

/** The files of this project, but for those that git ignores. */
export const sourceNames = () =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter((name) => name !== '' && existsSync(name));

export class Project {
  root = mkdtempSync(join(tmpdir(), 'holdfast-mutation-'));

  /** Of these files in `home`; `changed` are those with another text. */
  constructor(home, names, changed) {
    for (const name of names) cpSync(join(home, name), join(this.root, name));
    for (const place of new Set(['.', ...names.map(packageOf)])) {
      const modules = join(place, 'node_modules');
      if (existsSync(modules)) symlinkSync(resolve(modules), join(this.root, modules));
    }
    for (const { name, content } of changed) {
      mkdirSync(dirname(join(this.root, name)), { recursive: true });
      writeFileSync(join(this.root, name), content);
    }
    writeFileSync(join(this.root, 'mutation.config.mjs'), CONFIG);
    writeFileSync(join(this.root, 'compile-mutation.mjs'), COMPILE);
  }

  /** The folder with the compiled project, with those texts too. */
  compiled() {
    return execFileSync(process.execPath, ['compile-mutation.mjs'], {
      cwd: this.root,
      encoding: 'utf8',
    });
  }

  remove() {
    rmSync(this.root, { recursive: true });
  }
}

/** The folder of a package beside the library that a file belongs to. */
const packageOf = (name) => /^packages\/\w+/.exec(name)?.[0] ?? '.';
