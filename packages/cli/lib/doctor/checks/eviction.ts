import { error, ok, unknown, warning, type Found } from '../finding.js';
import { fieldIn, settingIn, type Server } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** The share of the memory that may be used. */
const NEARLY_FULL = 0.9;

const REMEDY =
  'Set maxmemory-policy noeviction (CONFIG SET, or the parameter group of the service), or give locks a Redis of their own.';

/** Whether a full memory would cost locks. */
export const eviction: ServerCheck = {
  name: 'eviction',
  async examine(server) {
    const info = await server.info('memory');
    const policy = fieldIn(info, 'maxmemory_policy') ?? (await configured(server));
    if (policy === undefined) {
      const why = info.status === 'failed' ? info.message : 'INFO does not name it';
      return [unknown('The eviction policy', why)];
    }
    const most = Number(fieldIn(info, 'maxmemory') ?? 0);
    return [policyFinding(policy, most), ...usage(most, Number(fieldIn(info, 'used_memory') ?? 0))];
  },
};

const configured = async (server: Server): Promise<string | undefined> =>
  settingIn(await server.ask('config', 'get', 'maxmemory-policy'), 'maxmemory-policy');

function policyFinding(policy: string, most: number): Found {
  if (policy === 'noeviction') return ok('The eviction policy is noeviction.');
  return most > 0
    ? error(
        `The eviction policy is ${policy}: when memory is full, locks that are held vanish.`,
        REMEDY,
      )
    : warning(
        `The eviction policy is ${policy}. No limit of memory is set, so nothing is evicted yet.`,
        REMEDY,
      );
}

function usage(most: number, used: number): readonly Found[] {
  if (most === 0 || used < most * NEARLY_FULL) return [];
  if (used >= most)
    return [
      error(
        'Its memory is full: locks are refused (503).',
        `Raise maxmemory (CONFIG SET maxmemory ${String(2 * used)}), or remove data.`,
      ),
    ];
  const percent = String(Math.round((used / most) * 100));
  return [
    warning(
      `${percent} % of its memory are used: when it is full, locks are refused (503).`,
      'Raise maxmemory, or remove data.',
    ),
  ];
}
