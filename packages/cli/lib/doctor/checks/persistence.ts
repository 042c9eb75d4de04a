import { error, ok, unknown, warning, type Found } from '../finding.js';
import { fieldIn, settingIn, type Answer } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** What a restart of the server forgets. */
export const persistence: ServerCheck = {
  name: 'persistence',
  async examine(server) {
    const info = await server.info('persistence');
    if (info.status === 'failed') return [unknown('Persistence', info.message)];
    const [epoch, sync, save] = await Promise.all([
      server.epoch(),
      server.ask('config', 'get', 'appendfsync'),
      server.ask('config', 'get', 'save'),
    ]);
    const isGuarded = epoch.status === 'answered' && typeof epoch.value === 'string';
    return [kept(info, { sync, save, isGuarded }), ...failures(info)];
  },
};

interface Settings {
  readonly sync: Answer;
  readonly save: Answer;
  /** The restart guard makes up for what a restart forgets. */
  readonly isGuarded: boolean;
}

const GUARD =
  'Set appendonly yes with appendfsync always, or use the option "restartGuard". With everysec, a restart forgets the last second.';

function kept(info: Answer, { sync, save, isGuarded }: Settings): Found {
  const guarded = isGuarded
    ? ' The restart guard keeps the server from granting locks until then.'
    : '';
  if (fieldIn(info, 'aof_enabled') === '1') {
    const how = settingIn(sync, 'appendfsync');
    if (how === 'always')
      return ok('Every write is on disk before it is answered (appendfsync always).');
    if (how === 'everysec' || how === undefined) {
      const told =
        how === undefined ? 'how often it is synced is not known' : 'appendfsync everysec';
      return ok(
        `Writes are appended to a file (${told}): a crash of the machine can forget the last second.${guarded}`,
      );
    }
    const text = `Writes are appended to a file, and the system decides when they are on disk (appendfsync ${how}).`;
    return isGuarded ? ok(text + guarded) : warning(text, GUARD);
  }
  const points = settingIn(save, 'save');
  const text =
    points === ''
      ? 'Nothing is written to disk: a restart forgets all locks that are held.'
      : `Only snapshots are written to disk${points === undefined ? '' : ` (save ${points})`}: a crash forgets the locks since the last one.`;
  return isGuarded ? ok(text + guarded) : warning(text, GUARD);
}

function failures(info: Answer): readonly Found[] {
  const found: Found[] = [];
  if (fieldIn(info, 'loading') === '1')
    found.push(warning('It is loading its data: locks are refused until then.', 'Wait for it.'));
  if (fieldIn(info, 'rdb_last_bgsave_status') === 'err')
    found.push(
      error(
        'The last snapshot failed: Redis may refuse all writes, and so all locks (MISCONF).',
        'Look into the log of the server: the disk may be full, or the folder not writable.',
      ),
    );
  if (fieldIn(info, 'aof_last_write_status') === 'err')
    found.push(
      error(
        'The last write to the append-only file failed: Redis refuses all writes (MISCONF).',
        'Look into the log of the server: the disk may be full.',
      ),
    );
  return found;
}
