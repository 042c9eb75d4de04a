import type { RunWithRedis } from '../command.js';
import { live } from '../live.js';
import { lockLines } from '../text/lock-table.js';
import { moment } from '../text/times.js';
import { counted } from '../text/who.js';
import { countIn } from '../values.js';
import { foundText, mostUrgent } from './list.js';

const DEFAULT_LIMIT = 100;

/** `list`, again and again. */
export const watch: RunWithRedis = (context) => {
  const { options, runtime, ink } = context;
  const limit = countIn(options.limit, DEFAULT_LIMIT);
  return live(context, async () => {
    const { locks, found } = await mostUrgent(context, limit);
    const nowMs = runtime.now().wallMs;
    const waiting = locks.reduce((sum, lock) => sum + lock.waiting, 0);
    const title = `${moment(new Date(nowMs))}  ${foundText(found)}, ${counted(waiting, 'process waits', 'processes wait')}`;
    return {
      facts: { at: new Date(nowMs), found, locks },
      draw: ({ columns }) => [
        title,
        ...(locks.length === 0 ? [] : lockLines(locks, { columns, nowMs, ink })),
      ],
    };
  });
};
