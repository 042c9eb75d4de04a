import { acquireScript } from '../../../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../../../lib/store/redis/scripts/extend.js';
import { beginScript, endScript } from '../../../../lib/store/redis/scripts/once.js';
import { give, take } from '../../../../lib/store/redis/scripts/plain.js';
import { quarantineScript } from '../../../../lib/store/redis/scripts/quarantine.js';
import { raiseFenceScript } from '../../../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../../../lib/store/redis/scripts/release.js';
import { setLimitScript } from '../../../../lib/store/redis/scripts/set-limit.js';
import type { ChannelKind, ModelCommand } from './model.js';

/** What happens to a server, and when. */
export type Step = { readonly atUs: number } & (
  | { readonly command: ModelCommand }
  | { readonly listens: 'begins' | 'ends'; readonly channel: string; readonly kind: ChannelKind }
  | { readonly memory: 'free' | 'full' }
);

/** All scripts of the library. */
export const SCRIPTS = {
  acquire: acquireScript,
  extend: extendScript,
  begin: beginScript,
  end: endScript,
  quarantine: quarantineScript,
  raiseFence: raiseFenceScript,
  release: releaseScript,
  setLimit: setLimitScript,
  take,
  give,
};

/** For people: long texts and sums by the names of the scripts. */
export function describeStep({ atUs, ...step }: Step): string {
  let what = JSON.stringify('command' in step ? step.command : step);
  for (const [name, { lua, sha }] of Object.entries(SCRIPTS))
    what = what.replace(JSON.stringify(lua), name).replace(JSON.stringify(sha), name);
  return `${atUs}: ${what}`;
}
