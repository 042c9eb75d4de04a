import type * as Ioredis from 'ioredis';
import { LockConfigurationError } from '../../../../errors.js';
import { REPLY_ERRORS } from '../reply-errors.js';
import installed from '../installed.cjs';
import type { IoredisClient } from './ioredis-shape.js';

type Package = typeof Ioredis;

/** @throws LockConfigurationError where it is not installed */
export function ioredis(what: string): Package {
  const found = installed('ioredis');
  if (found === undefined)
    throw new LockConfigurationError(
      `${what} of option "redis" needs ioredis, which is not installed: npm install ioredis`,
    );
  learnReplies(found);
  return found;
}

/** Either package: what is taken from it is the same in both. */
export const anyPackage = (what: string): Package => installed('iovalkey') ?? ioredis(what);

/** An error of a minified copy does not have the name that it had. */
export function learnRepliesOf(client: IoredisClient): void {
  for (const name of ['ioredis', 'iovalkey'] as const) {
    const found = installed(name);
    if (found !== undefined && (client instanceof found.Redis || client instanceof found.Cluster))
      learnReplies(found);
  }
}

function learnReplies({ ReplyError }: Package): void {
  const known = ReplyError as typeof Error;
  if (!REPLY_ERRORS.includes(known)) REPLY_ERRORS.push(known);
}
