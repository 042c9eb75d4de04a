import type { Snapshot } from './answers.js';
import { Audit } from './audit.js';
import type { Ask } from './deed.js';
import { HotKeys, Instances, Nodes } from './panels.js';
import { LocksTable } from './locks-table.js';
import { search } from './address.js';
import { count, unresponsiveIn } from './parts.js';

interface OverviewProps {
  readonly snapshot: Snapshot | undefined;
  readonly prefix: string;
  readonly ask: Ask;
}

/** All keys, and what is around them. */
export function Overview({ snapshot, prefix, ask }: OverviewProps) {
  return (
    <>
      <div class="bar">
        <h2 tabIndex={-1}>{snapshot === undefined ? 'Keys' : <Figures {...snapshot} />}</h2>
        <label>
          <span class="hidden">Only keys that begin with</span>
          <input
            type="search"
            placeholder="Keys that begin with…"
            value={prefix}
            onInput={(event) => search(event.currentTarget.value)}
          />
        </label>
      </div>
      <section aria-label="Keys" class="keys">
        <Keys snapshot={snapshot} prefix={prefix} />
      </section>
      {snapshot !== undefined && (
        <div class="columns">
          <HotKeys hot={snapshot.hot} />
          <Instances snapshot={snapshot} ask={ask} />
          <Nodes health={snapshot.health} />
        </div>
      )}
      {(snapshot?.audit?.length ?? 0) > 0 && <Audit entries={snapshot?.audit ?? []} />}
    </>
  );
}

/** `12 held, 5 waiting` */
function Figures({ locks, more }: Snapshot) {
  const held = locks.filter(({ state }) => state === 'held').length;
  const waiting = locks.reduce((sum, lock) => sum + lock.waiting, 0);
  return (
    <>
      {held}
      {more && '+'} held <small>{count(waiting, 'process', 'processes')} waiting</small>
    </>
  );
}

function Keys({ snapshot, prefix }: Omit<OverviewProps, 'ask'>) {
  if (snapshot === undefined) return <p class="empty">Looking…</p>;
  const { locks, more, problem } = snapshot;
  if (locks.length === 0) {
    if (problem !== undefined) return <p class="empty">What is held is not known.</p>;
    return (
      <p class="empty">
        {prefix === '' ? 'Nothing is held, and no caller waits.' : 'No key begins with this.'}
      </p>
    );
  }
  return (
    <>
      <LocksTable rows={locks} unresponsive={unresponsiveIn(snapshot)} />
      {more && (
        <p class="empty">These are {locks.length} of more keys. The search finds the others.</p>
      )}
    </>
  );
}
