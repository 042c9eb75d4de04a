import { expect, it } from '@jest/globals';
import { ChildScript } from '../support/child-script.js';

it('a process whose locks are released ends by itself, also without a shutdown', async () => {
  const child = new ChildScript(new URL('idle-process.ts', import.meta.url), []);
  expect(await child.output).toContain('held: false');
}, 30_000);
