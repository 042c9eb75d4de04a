import { error, ok, unknown, warning } from '../finding.js';
import { fieldIn } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** Older ones lack a form of SET that the scripts need. */
const OLDEST = 6;
/** The oldest that is tested. */
const [TESTED_MAJOR, TESTED_MINOR] = [6, 2];

/** Which server it is. */
export const version: ServerCheck = {
  name: 'version',
  async examine(server) {
    const info = await server.info('server');
    if (info.status === 'failed') return [unknown('The version', info.message)];
    const redis = fieldIn(info, 'redis_version');
    const valkey = fieldIn(info, 'valkey_version');
    if (valkey !== undefined) return [ok(`Valkey ${valkey}`)];
    if (redis === undefined) return [unknown('The version', 'INFO does not name it')];
    const [major = 0, minor = 0] = redis.split('.').map(Number);
    if (major < OLDEST)
      return [
        error(
          `Redis ${redis} is too old: no lock is granted.`,
          'Use Redis 6.2 or later, or Valkey.',
        ),
      ];
    if (major === TESTED_MAJOR && minor < TESTED_MINOR)
      return [
        warning(
          `Redis ${redis} has everything that locks need, and is older than any that is tested.`,
          'Use Redis 6.2 or later, or Valkey.',
        ),
      ];
    return [ok(`Redis ${redis}`)];
  },
};
