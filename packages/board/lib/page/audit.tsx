import type { Entry } from './answers.js';
import { count, KeyLink, Panel } from './parts.js';
import { At } from './time.js';

const ACTIONS = {
  release: 'released',
  'release-instance': 'released all locks of an instance:',
  'forget-once': 'forgot what was done for',
} as const;

interface AuditProps {
  readonly entries: readonly Entry[];
  /** Where the others are. */
  readonly more?: string | undefined;
}

/** What operators did to any key. */
export function Audit({ entries, more }: AuditProps) {
  return (
    <Panel
      id="audit"
      title="Interventions"
      actions={more !== undefined && <a href={more}>All of them</a>}
    >
      {entries.length === 0 && <p class="empty">No operator has done anything.</p>}
      <ul>
        {entries.map((entry) => (
          <li key={entry.at + entry.keys.join()}>
            <AuditText {...entry} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function AuditText({ at, action, keys, others, by, reason }: Entry) {
  return (
    <>
      <span>
        <strong>{by}</strong> {ACTIONS[action]}{' '}
        {keys.map((key, index) => (
          <>
            {index > 0 && ', '}
            <KeyLink of={key} />
          </>
        ))}
        {others > 0 && ` and ${count(others, 'other')}`}: {reason}
      </span>
      <At at={at} />
    </>
  );
}
