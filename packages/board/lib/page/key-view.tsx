import { hrefOfView } from './address.js';
import type { Holder, KeyAnswer, Lock, Past, Waiter } from './answers.js';
import { AuditText } from './audit.js';
import { forgetOf, releaseOf, type Ask } from './deed.js';
import {
  count,
  NextStep,
  originOf,
  Panel,
  runbook,
  Tag,
  Unresponsive,
  Who,
  whoOf,
} from './parts.js';
import { duration, exact, now, Since, span } from './time.js';

interface KeyViewProps {
  readonly name: string;
  readonly answer: KeyAnswer | undefined;
  readonly ask: Ask;
}

/** Everything about one key. */
export function KeyView({ name, answer, ask }: KeyViewProps) {
  const lock = answer?.lock;
  return (
    <>
      <p>
        <a href={hrefOfView()}>← All keys</a>
      </p>
      <div class="bar">
        <h2 tabIndex={-1} class="key">
          {name}
        </h2>
        {lock?.state === 'held' && (
          <button class="danger" onClick={() => ask(releaseOf(lock, effectOf(lock)))}>
            Release…
          </button>
        )}
      </div>
      {lock === undefined ? (
        <p class="empty">
          {answer === undefined ? 'Looking…' : (answer.problem ?? 'It is not known who holds it.')}
        </p>
      ) : (
        <>
          <p class="facts">
            <Tag>{lock.state}</Tag>
            {lock.mode !== undefined && <Tag>{lock.mode}</Tag>}
            {lock.limit !== undefined && <Tag>limit set to {lock.limit}</Tag>}
            {lock.fencingToken !== undefined && lock.state === 'free' && (
              <span class="quiet">last fencing token {lock.fencingToken}</span>
            )}
          </p>
          <div class="columns">
            <Holders {...lock} at={answer?.at ?? ''} />
            <Line {...lock} />
          </div>
          {lock.once && <Once {...lock.once} onForget={() => ask(forgetOf(lock))} />}
          <History {...lock} />
        </>
      )}
    </>
  );
}

function effectOf({ holders, line }: Lock): string {
  const isNotified = !holders.some(({ isUnresponsive, isForeign }) => isUnresponsive || isForeign);
  const holder = isNotified
    ? 'The holder is notified at once. Its work may continue for a moment.'
    : 'The holder cannot be notified, and its work may continue: if it is stopped, kill it first.';
  return line.length === 0 ? holder : `${holder} The next in line gets the key.`;
}

function Holders({ holders, at }: Lock & { readonly at: string }) {
  return (
    <Panel id="holders" title="Held by">
      {holders.length === 0 ? (
        <p class="empty">Nobody.</p>
      ) : (
        <ul>
          {holders.map((holder, index) => (
            <HolderItem key={holder.instance?.id ?? index} at={at} {...holder} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function HolderName({ instance, isForeign, isDetached }: Holder) {
  if (isDetached) return <>Detached: it waits to be attached</>;
  return isForeign ? <>Other software</> : <Who of={instance} />;
}

function HolderItem(holder: Holder & { readonly at: string }) {
  const { isUnresponsive, isDetached, since, at } = holder;
  // JSON has no endless numbers.
  const remainingMs = holder.remainingMs as number | null;
  const origin = originOf(holder);
  return (
    <li>
      <HolderName {...holder} /> {isUnresponsive && <Unresponsive />}
      {origin !== undefined && <code>{origin}</code>}
      <span>
        for <Since at={since} />
      </span>
      <span class="quiet">
        {remainingMs === null
          ? 'without an end'
          : `ends in ${duration(Math.max(0, remainingMs + Date.parse(at) - now()))} unless it is ${isDetached ? 'attached' : 'renewed'}`}
        {holder.places !== undefined && ` · ${count(holder.places, 'place')}`}
        {holder.fencingToken !== undefined && ` · fencing token ${holder.fencingToken}`}
      </span>
      {isUnresponsive && holder.instance !== undefined && <NextStep of={holder.instance} />}
    </li>
  );
}

function Line({ line }: Lock) {
  const callers = line.reduce((sum, each) => sum + (each.callers?.length ?? 0), 0);
  const note = `${count(line.length, 'process', 'processes')}, ${count(callers, 'caller')}`;
  return (
    <Panel id="line" title="In line" {...(line.length > 0 && { note })}>
      {line.length === 0 ? (
        <p class="empty">No caller waits.</p>
      ) : (
        <ol>
          {line.map((waiter) => (
            <WaiterItem key={waiter.position} {...waiter} />
          ))}
        </ol>
      )}
    </Panel>
  );
}

function WaiterItem({ instance, isUnresponsive, places, since, keys, callers = [] }: Waiter) {
  return (
    <li>
      <Who of={instance} /> {isUnresponsive && <Unresponsive />}
      {callers.length === 0 && (
        <span>
          for <Since at={since} />
        </span>
      )}
      {places !== undefined && <span class="quiet">wants {count(places, 'place')}</span>}
      {keys !== undefined && <span class="quiet">wants {keys.join(', ')}</span>}
      {callers.length > 0 && (
        <ul>
          {callers.map((caller, index) => (
            <li key={index}>
              <code>{originOf(caller) ?? 'a call'}</code> <Since at={caller.since} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Once(once: NonNullable<Lock['once']> & { readonly onForget: () => void }) {
  const { state, attempts, error, onForget } = once;
  return (
    <Panel
      id="once"
      title="Work that is done once"
      actions={<button onClick={onForget}>Forget…</button>}
    >
      <p>
        <Tag bad={state === 'exhausted' || state === 'failed'}>{state}</Tag> after{' '}
        {count(attempts, 'attempt')}{' '}
        {state !== 'done' && <a href={runbook('once-only-work-does-not-run')}>What to do</a>}
      </p>
      {error !== undefined && <p class="bad">{error}</p>}
    </Panel>
  );
}

/** The last holders, as the processes that still run remember them, and what operators did. */
function History({ history, audit }: Pick<Lock, 'history' | 'audit'>) {
  const entries = [
    ...history.map((past) => ({ at: past.to, text: <PastText {...past} /> })),
    ...audit.map((entry) => ({ at: entry.at, text: <AuditText {...entry} /> })),
  ].sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  return (
    <Panel id="history" title="History" note="holders of 1 s and longer, losses, interventions">
      {entries.length === 0 && <p class="empty">Nothing is remembered.</p>}
      <ul>
        {entries.map(({ at, text }) => (
          <li key={at}>{text}</li>
        ))}
      </ul>
    </Panel>
  );
}

function PastText({ instance, from, to, outcome, reason, fencingToken, ...origin }: Past) {
  const call = originOf(origin);
  return (
    <>
      <span>
        Held by {whoOf(instance)} for {span(Date.parse(to) - Date.parse(from))}, then{' '}
        {reason === undefined ? outcome : `${outcome} (${reason})`}
      </span>
      {call !== undefined && <code>{call}</code>}
      <span class="quiet">
        {exact(from)} to {exact(to)} · fencing token {fencingToken}
      </span>
    </>
  );
}
