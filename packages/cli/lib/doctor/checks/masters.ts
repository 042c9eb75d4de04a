import { ok, warning } from '../finding.js';
import type { CommonCheck } from '../subject.js';

/** Whether the number of masters makes sense. */
export const masters: CommonCheck = {
  name: 'masters',
  examine({ kind, nodes }) {
    if (kind !== 'several masters') return Promise.resolve([]);
    const mayFail = Math.ceil(nodes / 2) - 1;
    const text = `${String(nodes)} independent masters: ${String(mayFail)} of them may fail.`;
    return Promise.resolve([
      nodes % 2 === 0
        ? warning(
            text,
            'Take an odd number: one more allows one more to fail, one less allows as many.',
          )
        : ok(text),
    ]);
  },
};
