import type { Instance, Node, Snapshot } from './answers.js';
import { count, isSilent, KeyLink, Panel, Tag, Unresponsive, Who } from './parts.js';
import { duration, now, span } from './time.js';

export function HotKeys({ hot }: Pick<Snapshot, 'hot'>) {
  return (
    <Panel id="hot" title="Hot keys" note="last 5 minutes">
      {hot === undefined || hot.length === 0 ? (
        <p class="empty">{hot === undefined ? 'Not known.' : 'No caller waited or was refused.'}</p>
      ) : (
        <ul>
          {hot.map(({ key, waitedMs, waits, waiting, refusals }) => (
            <li key={key}>
              <KeyLink of={key} />
              <span class="quiet">
                {[
                  waits + waiting > 0 &&
                    `${duration(waitedMs)} in ${count(waits + waiting, 'wait')}`,
                  waiting > 0 && `${count(waiting, 'caller')} now`,
                  refusals > 0 && `refused ${count(refusals, 'time')}`,
                ]
                  .filter(Boolean)
                  .join(' · ')}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

export function Instances({ snapshot }: { readonly snapshot: Snapshot }) {
  const { instances } = snapshot;
  return (
    <Panel id="instances" title="Instances" {...(instances && { note: String(instances.length) })}>
      {instances === undefined || instances.length === 0 ? (
        <p class="empty">{instances === undefined ? 'Not known.' : 'None has reported.'}</p>
      ) : (
        <ul>
          {instances.map((each) => (
            <InstanceItem key={each.id} of={each} isUnresponsive={isSilent(snapshot, each)} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

interface InstanceProps {
  readonly of: Instance;
  readonly isUnresponsive: boolean;
}

function InstanceItem({ of, isUnresponsive }: InstanceProps) {
  return (
    <li>
      <span>
        <Who of={of} /> {isUnresponsive && <Unresponsive />}
      </span>
      <span class="quiet" title={of.seenAt}>
        {of.version !== undefined && `version ${of.version} · `}
        up {span(now() - Date.parse(of.startedAt))}
        {of.isUnresponsive && ` · last seen ${span(now() - Date.parse(of.seenAt))} ago`}
      </span>
    </li>
  );
}

export function Nodes({ health }: Pick<Snapshot, 'health'>) {
  return (
    <Panel
      id="nodes"
      title="Redis"
      {...(health && health.quorum > 1 && { note: `${health.quorum} have to agree` })}
    >
      {health === undefined ? (
        <p class="empty">Not known.</p>
      ) : (
        <>
          {!health.hasQuorum && <p class="bad">No lock can be granted.</p>}
          <ul>
            {health.nodes.map((node) => (
              <NodeItem key={node.node} of={node} />
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

function NodeItem({ of }: { readonly of: Node }) {
  const problem =
    of.problem ??
    (of.quarantinedForMs > 0
      ? `Grants no locks for ${duration(of.quarantinedForMs)} more: it may have forgotten some.`
      : undefined);
  return (
    <li>
      <div class="bar">
        <span class="key">{of.node}</span>
        {problem === undefined ? (
          <span class="quiet">{of.latencyMs === undefined ? 'well' : duration(of.latencyMs)}</span>
        ) : (
          <Tag bad>{of.reachable ? 'not well' : 'not reachable'}</Tag>
        )}
      </div>
      {problem !== undefined && <span class="bad">{problem}</span>}
    </li>
  );
}
