import { expect, it } from '@jest/globals';
import { newMaker, newOwnerToken } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';

it('names a service by what the command line takes for no option', () => {
  const runtime = { ...systemRuntime, uuid: () => '00000000-0000-4000-8000-f80000000000' };
  expect(newMaker(runtime)).toBe('_AAAAAAA.');
});

it.each([
  [1, 'holdfast:me.id:limit:5'],
  [3, 'holdfast:me.id*3:limit:5'],
])('names %d places in a token only where they are several', (places, token) => {
  const runtime = { ...systemRuntime, uuid: () => 'id' };
  expect(newOwnerToken(runtime, { maker: 'me.', mode: 'limit:5', places })).toBe(token);
});
