import { expect, it, jest } from '@jest/globals';
import { Redlock } from '@nestjs-holdfast/redlock';
import { createTestLocks } from 'nestjs-holdfast/testing';

it('@nestjs-holdfast/redlock is deprecated, and says so once', () => {
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);
  const { locks } = createTestLocks();
  for (let each = 0; each < 2; each += 1) new Redlock(locks);
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(
        /next major version removes it\. Use LockService: https:\/\/\S+\/docs\/migrating\.md#redlock-5$/,
      ),
      { type: 'DeprecationWarning', code: 'HOLDFAST_REDLOCK' },
    ],
  ]);
  warn.mockRestore();
});
