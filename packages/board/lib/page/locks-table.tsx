import { useLayoutEffect, useRef } from 'preact/hooks';
import type { View } from '../board.types.js';
import { show } from './address.js';
import type { Instance, Row } from './answers.js';
import { count, KeyLink, Tag, Unresponsive, Who } from './parts.js';
import { exact, now, Since, span } from './time.js';

const COLUMNS = {
  key: { label: 'Key', direction: 'ascending' },
  since: { label: 'Held for', direction: 'descending' },
  waiting: { label: 'Waiting', direction: 'descending' },
} as const;

interface TableProps {
  readonly label: string;
  readonly rows: readonly Row[];
  /** Missing for a table that cannot be sorted. */
  readonly view?: View;
  /** The keys that are chosen; missing where none can be. */
  readonly chosen?: ReadonlyMap<string, Row>;
  readonly choose?: (row: Row, isChosen: boolean) => void;
}

export function LocksTable({ label, rows, view, chosen, choose }: TableProps) {
  const body = useKeptFocus();
  const header = (name: keyof typeof COLUMNS, className?: string) => {
    const { label: text, direction } = COLUMNS[name];
    return (
      <th
        role="columnheader"
        scope="col"
        class={className}
        aria-sort={view?.sort === name ? direction : undefined}
      >
        {view === undefined ? (
          text
        ) : (
          <button class="sort" onClick={() => show({ ...view, sort: name, page: 1 })}>
            {text}
          </button>
        )}
      </th>
    );
  };
  // The roles are those of the elements, which lose them on narrow screens, where the rows are laid out otherwise.
  return (
    <table role="table" aria-label={label}>
      <thead role="rowgroup">
        <tr role="row">
          {header('key', 'wide')}
          <th role="columnheader" scope="col">
            Held by
          </th>
          {header('since', 'time')}
          {header('waiting', 'time')}
        </tr>
      </thead>
      <tbody role="rowgroup" ref={body}>
        {rows.map((row) => (
          <LockRow
            key={row.key}
            row={row}
            isChosen={chosen?.has(row.key)}
            choose={row.state === 'held' ? choose : undefined}
          />
        ))}
      </tbody>
    </table>
  );
}

/** When the row that has the focus goes away, the row that takes its place gets it. */
function useKeptFocus() {
  const body = useRef<HTMLTableSectionElement>(null);
  const last = useRef<{ readonly element: Element; readonly index: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const rows = [...(body.current?.rows ?? [])];
    const { element, index } = last.current ?? { element: undefined, index: 0 };
    if (element !== undefined && !element.isConnected && document.activeElement === document.body)
      rows
        .at(Math.min(index, rows.length - 1))
        ?.querySelector('a')
        ?.focus();
    const focused = document.activeElement;
    const at = rows.findIndex((row) => row.contains(focused));
    last.current = focused === null || at < 0 ? undefined : { element: focused, index: at };
  });
  return body;
}

interface HolderProps {
  readonly of: Instance | undefined;
  readonly isDetached: boolean | undefined;
}

function Holder({ of, isDetached }: HolderProps) {
  return isDetached ? <span class="quiet">detached</span> : <Who of={of} />;
}

interface RowProps {
  readonly row: Row;
  readonly isChosen: boolean | undefined;
  readonly choose: TableProps['choose'];
}

function LockRow({ row, isChosen = false, choose }: RowProps) {
  const { key, state, mode, inUse, once, holders, instance, isDetached, since } = row;
  const isHeld = state === 'held';
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        {choose !== undefined && (
          <input
            type="checkbox"
            aria-label={`Choose ${key}`}
            checked={isChosen}
            onChange={(event) => choose(row, event.currentTarget.checked)}
          />
        )}
        <KeyLink of={key} />
        {mode !== undefined && mode !== 'exclusive' && (
          <Tag>{inUse === undefined ? mode : `${mode}, ${inUse} in use`}</Tag>
        )}
        {row.isLeader && <Tag>leader</Tag>}
        {once !== undefined && (
          <Tag bad={once === 'exhausted' || once === 'failed'}>once: {once}</Tag>
        )}
      </th>
      <td role="cell">
        {isHeld ? (
          <Holder of={instance} isDetached={isDetached} />
        ) : (
          <span class="quiet">nobody</span>
        )}
        {holders > 1 && <span class="quiet"> and {holders - 1} more</span>}
        {row.isUnresponsive && <Unresponsive />}
      </td>
      <td role="cell">{isHeld ? <Since at={since} /> : <span class="quiet">–</span>}</td>
      <td role="cell">
        <Waits of={row} />
      </td>
    </tr>
  );
}

/** `5 callers in 2 processes, for 3 min 12 s` */
function Waits({ of: { waiting, callers = 0, waitingSince } }: { readonly of: Row }) {
  if (waiting === 0 && callers === 0) return <span class="quiet">nobody waits</span>;
  const processes = count(waiting, 'process', 'processes');
  return (
    <>
      <strong>{callers === 0 ? processes : count(callers, 'caller')}</strong>
      {callers > 0 && waiting > 0 && ` in ${processes}`}
      {waitingSince !== undefined && (
        <span class="line">
          for{' '}
          <time dateTime={waitingSince} title={exact(waitingSince)}>
            {span(now() - Date.parse(waitingSince))}
          </time>
        </span>
      )}
    </>
  );
}
