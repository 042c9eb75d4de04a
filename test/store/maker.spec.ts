import { expect, it } from '@jest/globals';
import { newMaker } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';

it('names a service by what the command line takes for no option', () => {
  const runtime = { ...systemRuntime, uuid: () => '00000000-0000-4000-8000-f80000000000' };
  expect(newMaker(runtime)).toBe('_AAAAAAA.');
});
