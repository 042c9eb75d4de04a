import { LockStoreUnavailableError } from '../../../errors.js';
import { counted, nameOf } from '../../text/who.js';
import { ok, unknown, warning } from '../finding.js';
import type { CommonCheck } from '../subject.js';

const MOST_NAMED = 5;

/** Who uses the locks, and whether they still report. */
export const services: CommonCheck = {
  name: 'services',
  async examine({ session }) {
    try {
      const all = await session.admin.instances();
      const silent = all.filter(({ isSilent }) => isSilent);
      const text = `${counted(all.length, 'service')} described ${all.length === 1 ? 'itself' : 'themselves'} in the last hour`;
      if (silent.length === 0) return [ok(`${text}, and all report.`)];
      const names = silent.slice(0, MOST_NAMED).map(nameOf).join('; ');
      return [
        warning(
          `${text}, ${String(silent.length)} of them no longer: ${names}. They are frozen, cut off or dead, or a server refuses what they write.`,
          'See "nestjs-holdfast instances". What a dead one holds ends with its TTL, or by "release-instance".',
        ),
      ];
    } catch (problem) {
      if (!(problem instanceof LockStoreUnavailableError)) throw problem;
      return [
        unknown('Who uses the locks', problem.nodes.map(({ message }) => message).join('; ')),
      ];
    }
  },
};
