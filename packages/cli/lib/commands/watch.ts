import type { RunWithRedis } from '../command.js';
import { live } from '../live.js';
import { lockLines } from '../text/lock-table.js';
import { moment } from '../text/times.js';
import { counted } from '../text/who.js';
import { firstKeys, foundText, tableOf } from './list.js';

/** `list`, again and again. */
export const watch: RunWithRedis = (context) => {
  const { options, runtime, ink } = context;
  const table = tableOf(options);
  return live(context, async () => {
    const { locks, found, seen } = await firstKeys(context, table);
    const nowMs = runtime.now().wallMs;
    const waiting = locks.reduce((sum, lock) => sum + lock.waiting, 0);
    const title = `${moment(new Date(nowMs))}  ${foundText(found)}, ${counted(waiting, 'process waits', 'processes wait')}`;
    return {
      isEmpty: seen === 0,
      facts: { at: new Date(nowMs), found, locks },
      draw: ({ columns }) => [
        title,
        ...(locks.length === 0 ? [] : lockLines(locks, { columns, nowMs, ink })),
      ],
    };
  });
};
