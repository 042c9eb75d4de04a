import { useState } from 'preact/hooks';
import type { Instance, Row } from './answers.js';
import { KeyLink, Tag, Unresponsive, Who } from './parts.js';
import { Since } from './time.js';

const startOf = ({ since }: Row): number => (since === undefined ? Infinity : Date.parse(since));

/** How rows are sorted, and what comes first then. Rows that are alike are in the order of their keys. */
const ORDERS = {
  key: { label: 'Key', direction: 'ascending', compare: () => 0 },
  since: {
    label: 'Held for',
    direction: 'descending',
    compare: (a: Row, b: Row) => (startOf(a) === startOf(b) ? 0 : startOf(a) - startOf(b)),
  },
  waiting: {
    label: 'Waiting',
    direction: 'descending',
    compare: (a: Row, b: Row) => b.waiting - a.waiting,
  },
} as const;

type Order = keyof typeof ORDERS;

interface TableProps {
  readonly rows: readonly Row[];
  /** The ids of instances. */
  readonly unresponsive: ReadonlySet<string>;
}

export function LocksTable({ rows, unresponsive }: TableProps) {
  const [order, setOrder] = useState<Order>('waiting');
  const sorted = [...rows].sort(ORDERS[order].compare);
  const header = (name: Order, className?: string) => (
    <th
      role="columnheader"
      scope="col"
      class={className}
      aria-sort={order === name ? ORDERS[name].direction : undefined}
    >
      <button class="sort" onClick={() => setOrder(name)}>
        {ORDERS[name].label}
      </button>
    </th>
  );
  // The roles are those of the elements, which lose them on narrow screens, where the rows are laid out otherwise.
  return (
    <table role="table" aria-label="Keys">
      <thead role="rowgroup">
        <tr role="row">
          {header('key')}
          <th role="columnheader" scope="col">
            Held by
          </th>
          {header('since')}
          {header('waiting', 'number')}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {sorted.map((row) => (
          <LockRow
            key={row.key}
            row={row}
            isUnresponsive={unresponsive.has(row.instance?.id ?? '')}
          />
        ))}
      </tbody>
    </table>
  );
}

interface HolderProps {
  readonly of: Instance | undefined;
  readonly isDetached: boolean | undefined;
}

function Holder({ of, isDetached }: HolderProps) {
  return isDetached ? <span class="quiet">detached</span> : <Who of={of} />;
}

function LockRow({ row, isUnresponsive }: { readonly row: Row; readonly isUnresponsive: boolean }) {
  const { key, state, mode, inUse, once, holders, instance, isDetached, since, waiting } = row;
  const isHeld = state === 'held';
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <KeyLink of={key} />
        {mode !== undefined && mode !== 'exclusive' && (
          <Tag>{inUse === undefined ? mode : `${mode}, ${inUse} in use`}</Tag>
        )}
        {once !== undefined && <Tag bad={once === 'exhausted'}>once: {once}</Tag>}
      </th>
      <td role="cell">
        {isHeld ? (
          <Holder of={instance} isDetached={isDetached} />
        ) : (
          <span class="quiet">nobody</span>
        )}
        {holders > 1 && <span class="quiet"> and {holders - 1} more</span>}
        {isUnresponsive && <Unresponsive />}
      </td>
      <td role="cell">{isHeld ? <Since at={since} /> : <span class="quiet">–</span>}</td>
      <td role="cell" class="number">
        {waiting === 0 ? <span class="quiet">0</span> : <strong>{waiting}</strong>}
        <span class="unit"> waiting</span>
      </td>
    </tr>
  );
}
