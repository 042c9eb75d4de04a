import { useState } from 'preact/hooks';
import type { View } from '../board.types.js';
import { hrefOfAudit, hrefOfView, show } from './address.js';
import type { Keys, Row, Snapshot } from './answers.js';
import { Audit } from './audit.js';
import { releaseSeveralOf, type Ask } from './deed.js';
import { LocksTable } from './locks-table.js';
import { HotKeys, Instances, Nodes } from './panels.js';
import { count } from './parts.js';
import { LastHour } from './spark.js';
import { exact, now, span } from './time.js';

const FILTERS: Readonly<Record<View['filter'], string>> = {
  all: 'All keys',
  'waited-for': 'Keys that callers wait for',
  unresponsive: 'Keys of processes that do not reply',
  detached: 'Detached locks',
  'once-failed': 'Once-only work that failed',
  leaders: 'Leaders',
};

/** A search of the store that is older, in ms, is said to be. */
const OLD_MS = 7_000;

const MOST_AUDITED = 5;

interface OverviewProps {
  readonly snapshot: Snapshot | undefined;
  readonly view: View;
  readonly ask: Ask;
}

/** All keys, and what is around them. */
export function Overview({ snapshot, view, ask }: OverviewProps) {
  return (
    <>
      <h2 tabIndex={-1}>
        {snapshot?.keys === undefined ? 'Keys' : <Figures {...snapshot.keys} />}
      </h2>
      {snapshot !== undefined && snapshot.attention.length > 0 && (
        <section aria-labelledby="attention" class="keys attention">
          <h3 id="attention">Look at these first</h3>
          <LocksTable label="Look at these first" rows={snapshot.attention} />
        </section>
      )}
      {snapshot?.hour !== undefined && <LastHour hour={snapshot.hour} />}
      <KeysTable snapshot={snapshot} view={view} ask={ask} />
      {snapshot !== undefined && (
        <div class="columns">
          <HotKeys hot={snapshot.hot} />
          <Instances snapshot={snapshot} />
          <Nodes health={snapshot.health} />
        </div>
      )}
      {snapshot?.audit !== undefined && (
        <Audit
          entries={snapshot.audit.slice(0, MOST_AUDITED)}
          more={snapshot.audit.length > MOST_AUDITED ? hrefOfAudit() : undefined}
        />
      )}
    </>
  );
}

/** Processes that do not reply tell nothing of their callers. */
function waitingText(callers: number, processes: number): string {
  if (callers > 0) return `${count(callers, 'caller')} waiting`;
  return processes > 0 ? `${count(processes, 'process', 'processes')} waiting` : 'nobody waits';
}

/** `12 held, 5 callers waiting` */
function Figures({ held, more, callers, waiting }: Keys) {
  return (
    <>
      {held}
      {more && '+'} held <small>{waitingText(callers, waiting)}</small>
    </>
  );
}

/** A table of keys with its search, filter, pages, and what can be done to several. */
export function KeysTable({ snapshot, view, ask }: OverviewProps) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, Row>>(new Map());
  const choose = (row: Row, isChosen: boolean): void =>
    setChosen((before) => {
      const after = new Map(before);
      if (isChosen) after.set(row.key, row);
      else after.delete(row.key);
      return after;
    });
  const keys = snapshot?.keys;
  return (
    <section aria-label="Keys" class="keys">
      <div class="bar tools">
        <label>
          <span class="hidden">Only keys with this in their names</span>
          <input
            type="search"
            placeholder="Search keys…"
            value={view.search}
            onInput={(event) => show({ ...view, search: event.currentTarget.value, page: 1 })}
          />
        </label>
        <label>
          <span class="hidden">Which keys</span>
          <select
            value={view.filter}
            onChange={(event) =>
              show({ ...view, filter: event.currentTarget.value as View['filter'], page: 1 })
            }
          >
            {Object.entries(FILTERS).map(([name, text]) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {chosen.size > 0 && (
          <span class="bar">
            <button
              class="danger"
              onClick={() => {
                ask(releaseSeveralOf([...chosen.values()]));
                setChosen(new Map());
              }}
            >
              Release {chosen.size}…
            </button>
            <button onClick={() => setChosen(new Map())}>Choose none</button>
          </span>
        )}
      </div>
      {keys === undefined || keys.rows.length === 0 ? (
        <p class="empty">{emptyText(snapshot, view)}</p>
      ) : (
        <LocksTable label="Keys" rows={keys.rows} view={view} chosen={chosen} choose={choose} />
      )}
      {keys !== undefined && <Pages keys={keys} view={view} />}
    </section>
  );
}

function emptyText(snapshot: Snapshot | undefined, { search, filter, instance }: View): string {
  if (snapshot === undefined) return 'Looking…';
  if (snapshot.keys === undefined)
    return snapshot.status.level === 'bad' ? 'What is held is not known.' : 'Reading the keys…';
  if (instance !== '') return 'It holds nothing, and waits for nothing.';
  return search === '' && filter === 'all'
    ? 'Nothing is held, and no caller waits.'
    : 'There is no such key.';
}

function Pages({ keys, view }: { readonly keys: Keys; readonly view: View }) {
  const { at, found, page, pages, more } = keys;
  const ageMs = now() - Date.parse(at);
  const link = (to: number, text: string) =>
    to >= 1 && to <= pages && <a href={hrefOfView({ ...view, page: to })}>{text}</a>;
  return (
    <nav class="bar pages" aria-label="Pages">
      <span class="quiet">
        {count(found, 'key')}
        {more && '; the store has more than were read'}
        {ageMs >= OLD_MS && ` · as of ${exact(at)}, ${span(ageMs)} ago`}
      </span>
      {pages > 1 && (
        <span class="bar">
          {link(page - 1, 'Previous')}
          <span>
            Page {page} of {pages}
          </span>
          {link(page + 1, 'Next')}
        </span>
      )}
    </nav>
  );
}
