import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { atMost } from '../support/must.mjs';
import { median } from '../support/stats.mjs';

const execute = promisify(execFile);
const child = fileURLToPath(new URL('../support/import.mjs', import.meta.url));
const holdfast = new URL('../../../dist/index.js', import.meta.url).href;

/** Milliseconds, in a process of its own. */
async function importing(name) {
  const { stdout } = await execute(process.execPath, [child, name]);
  return Number(stdout);
}

export const startUp = {
  id: 'start-up',
  title: 'What `import` costs an application that has imported Nest and ioredis',

  async run({ quick }) {
    const packages = [
      { label: 'Holdfast', kind: 'holdfast', name: holdfast },
      { label: 'redlock 5', kind: 'peer', name: 'redlock' },
      { label: 'redis-semaphore', kind: 'peer', name: 'redis-semaphore' },
    ];
    const samples = new Map(packages.map((one) => [one, []]));
    for (let round = 0; round < (quick ? 5 : 15); round += 1)
      for (const one of packages) samples.get(one).push(await importing(one.name));
    const rows = packages.map((one) => {
      const { label, kind } = one;
      return { label, kind, ms: median(samples.get(one)) };
    });
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'ms', head: 'median, ms', digits: 1 },
      ],
      rows,
      musts: [atMost('import of Holdfast, ms', rows[0].ms, 30)],
      plot: { name: 'ms', unit: 'ms', digits: 1 },
    };
  },
};
