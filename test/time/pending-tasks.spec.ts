import { describe, expect, it } from '@jest/globals';
import { PendingTasks } from '../../lib/time/pending-tasks.js';
import { deferred } from '../support/eventually.js';
import { settled } from '../support/virtual-runtime.js';

/** Whether the wait is over when all that promises can bring about has happened. */
async function isOver(waiting: Promise<void>): Promise<boolean> {
  let over = false;
  void waiting.then(() => {
    over = true;
  });
  await settled();
  return over;
}

describe('pending tasks', () => {
  it('are settled when there are none', async () => {
    expect(await isOver(new PendingTasks().settled())).toBe(true);
  });

  it('are settled when the last one is, and not before', async () => {
    const tasks = new PendingTasks();
    const [first, last] = [deferred(), deferred()];
    void tasks.add(first.promise);
    void tasks.add(last.promise);
    const waiting = tasks.settled();
    first.resolve();
    expect(await isOver(waiting)).toBe(false);
    last.resolve();
    expect(await isOver(waiting)).toBe(true);
  });

  it('are waited for, too, when they were added meanwhile', async () => {
    const tasks = new PendingTasks();
    const [first, added] = [deferred(), deferred()];
    void tasks.add(first.promise);
    const waiting = tasks.settled();
    void tasks.add(added.promise);
    first.resolve();
    expect(await isOver(waiting)).toBe(false);
    added.resolve();
    expect(await isOver(waiting)).toBe(true);
  });

  it('may fail: the caller that added one gets the error, the caller that waits does not', async () => {
    const tasks = new PendingTasks();
    const failing = deferred<never>();
    const added = tasks.add(failing.promise);
    expect(added).toBe(failing.promise);
    const waiting = tasks.settled();
    failing.reject(new RangeError('mine'));
    await expect(added).rejects.toThrow(RangeError);
    expect(await isOver(waiting)).toBe(true);
  });
});
