import type { View } from '../board.types.js';
import { hrefOfView } from './address.js';
import type { Snapshot } from './answers.js';
import { releaseAllOf, type Ask } from './deed.js';
import { KeysTable } from './overview.js';
import { isSilent, NextStep, Panel, Unresponsive, whoOf } from './parts.js';
import { At, now, Since } from './time.js';

/** An instance that was heard since then may be alive: its locks cannot be released together. */
const OVERDUE_MS = 15_000;

interface InstanceViewProps {
  readonly snapshot: Snapshot | undefined;
  readonly view: View;
  readonly ask: Ask;
}

/** One process: what it holds, and what it waits for. */
export function InstanceView({ snapshot, view, ask }: InstanceViewProps) {
  const instance = snapshot?.instances?.find(({ id }) => id === view.instance);
  const isStuck = snapshot !== undefined && instance !== undefined && isSilent(snapshot, instance);
  return (
    <>
      <p>
        <a href={hrefOfView()}>← All keys</a>
      </p>
      <div class="bar">
        <h2 tabIndex={-1}>
          {instance === undefined ? `Instance ${view.instance}` : whoOf(instance)}
        </h2>
        {isStuck && now() - Date.parse(instance.seenAt) > OVERDUE_MS && (
          <button class="danger" onClick={() => ask(releaseAllOf(instance))}>
            Release all…
          </button>
        )}
      </div>
      {instance === undefined ? (
        <p class="empty">{snapshot === undefined ? 'Looking…' : 'It has no record.'}</p>
      ) : (
        <Panel id="process" title="Process">
          <p>
            {isStuck ? <Unresponsive /> : 'It replies.'}{' '}
            {instance.version !== undefined && `Version ${instance.version}. `}
            {instance.service !== undefined && `Service ${instance.service}. `}Up for{' '}
            <Since at={instance.startedAt} />, last seen <At at={instance.seenAt} />
          </p>
          {isStuck && <NextStep of={instance} />}
        </Panel>
      )}
      <KeysTable snapshot={snapshot} view={view} ask={ask} />
    </>
  );
}
