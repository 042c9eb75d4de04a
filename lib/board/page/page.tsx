import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** The answers of the controller, as JSON has them. */
interface Instance {
  id: string;
  application: string;
  host: string;
  pid: number;
  version?: string;
  startedAt: string;
  seenAt: string;
  isSilent: boolean;
}
interface Row {
  key: string;
  state: string;
  mode?: string;
  holders: number;
  instance?: Instance;
  since?: string;
  waiting: number;
  once?: string;
}
interface Origin {
  method?: string;
  template?: string;
  place?: string;
  since?: string;
}
interface Holder extends Origin {
  instance?: Instance;
  isForeign: boolean;
  remainingMs: number | null;
  fencingToken?: number;
  isSilent: boolean;
}
interface Waiter {
  position: number;
  instance?: Instance;
  since?: string;
  callers?: Origin[];
  isSilent: boolean;
}
interface Audit {
  at: string;
  action: string;
  keys: string[];
  by: string;
  reason: string;
}
interface Lock {
  key: string;
  state: string;
  mode?: string;
  fencingToken?: number;
  holders: Holder[];
  line: Waiter[];
  once?: { state: string; attempts: number; error?: string };
  audit: Audit[];
}
interface Node {
  node: string;
  reachable: boolean;
  latencyMs?: number;
  quarantinedForMs: number;
  problem?: string;
}
interface Snapshot {
  at: string;
  locks: Row[];
  more: boolean;
  instances: Instance[];
  hot: {
    keys: { key: string; waitedMs: number; waits: number; refusals: number }[];
    silent: Instance[];
  };
  health: { nodes: Node[]; quorum: number; hasQuorum: boolean };
  outage?: true;
}
interface Deed {
  path: string;
  title: string;
  verb: string;
  body: Record<string, string>;
}

let ahead = 0;
const title = document.body.dataset['title'] ?? 'Locks';

function span(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return s < 86400
    ? `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
    : `${Math.floor(s / 86400)} d`;
}
const ago = (at?: string) =>
  at ? (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {span(Date.now() + ahead - Date.parse(at))}
    </time>
  ) : (
    '–'
  );
const Who = ({ of }: { of?: Instance }) =>
  of ? (
    <span>
      {of.application}{' '}
      <span class="quiet">
        {of.host} · {of.pid}
      </span>
      {of.isSilent && <b class="tag warn">silent</b>}
    </span>
  ) : (
    <span class="quiet">unknown</span>
  );
const keyAt = () => new URLSearchParams(location.hash.slice(1)).get('key');
const hrefOf = (key: string) => `${location.pathname}#${new URLSearchParams({ key }).toString()}`;

function App() {
  const [snapshot, setSnapshot] = useState<Snapshot>();
  const [lost, setLost] = useState(false);
  const [search, setSearch] = useState('');
  const [key, setKey] = useState(keyAt());
  const [deed, setDeed] = useState<Deed>();
  const [said, setSaid] = useState('');
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    const moved = () => setKey(keyAt());
    addEventListener('hashchange', moved);
    return () => {
      clearInterval(timer);
      removeEventListener('hashchange', moved);
    };
  }, []);
  useEffect(() => {
    const events = new EventSource(`api/stream?prefix=${encodeURIComponent(search)}`);
    events.addEventListener('snapshot', (event) => {
      const next = JSON.parse(event.data as string) as Snapshot;
      ahead = Date.parse(next.at) - Date.now();
      setSnapshot(next);
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    events.onopen = () => {
      clearTimeout(timer);
      timer = undefined;
      setLost(false);
    };
    events.onerror = () => {
      timer ??= setTimeout(() => setLost(true), 2500);
    };
    return () => {
      clearTimeout(timer);
      events.close();
    };
  }, [search]);
  return (
    <>
      <header>
        <h1>
          <a href={location.pathname + '#'}>{title}</a>
        </h1>
        {lost ? (
          <p class="state bad" role="alert">
            Connection lost. Trying again…
          </p>
        ) : (
          <p class="state">{snapshot ? 'Live' : 'Connecting…'}</p>
        )}
      </header>
      <main>
        {snapshot?.outage && (
          <p class="banner" role="alert">
            Redis does not answer. What is held is not known.
          </p>
        )}
        {key !== null ? (
          <KeyView key={key} name={key} act={setDeed} />
        ) : (
          <Overview s={snapshot} search={search} setSearch={setSearch} act={setDeed} />
        )}
      </main>
      <p class="hidden" role="status">
        {said}
      </p>
      {deed && (
        <Confirm
          deed={deed}
          done={(text) => {
            setDeed(undefined);
            setSaid(text);
          }}
        />
      )}
    </>
  );
}

function Overview({
  s,
  search,
  setSearch,
  act,
}: {
  s?: Snapshot | undefined;
  search: string;
  setSearch: (text: string) => void;
  act: (deed: Deed) => void;
}) {
  return (
    <>
      <section aria-labelledby="held">
        <div class="bar">
          <h2 id="held">Keys</h2>
          <label>
            <span class="hidden">Keys that begin with</span>
            <input
              type="search"
              placeholder="Keys that begin with…"
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </label>
        </div>
        {!s ? (
          <p class="empty">Loading…</p>
        ) : s.locks.length === 0 ? (
          <p class="empty">
            {search ? 'No key begins with this.' : 'Nothing is held, and nobody waits.'}
          </p>
        ) : (
          <div class="scroll" tabIndex={0} role="region" aria-label="Keys">
            <table>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Held by</th>
                  <th scope="col" class="n">
                    Since
                  </th>
                  <th scope="col" class="n">
                    Waiting
                  </th>
                </tr>
              </thead>
              <tbody>
                {s.locks.map((l) => (
                  <tr key={l.key}>
                    <th scope="row">
                      <a href={hrefOf(l.key)}>{l.key}</a>
                      {l.mode && l.mode !== 'exclusive' && <b class="tag">{l.mode}</b>}
                      {l.once && <b class="tag">once: {l.once}</b>}
                    </th>
                    <td>
                      {l.state === 'held' ? (
                        <>
                          <Who of={l.instance} />
                          {l.holders > 1 && ` and ${l.holders - 1} more`}
                        </>
                      ) : (
                        <span class="quiet">free</span>
                      )}
                    </td>
                    <td class="n">{ago(l.since)}</td>
                    <td class="n">{l.waiting || '–'}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {s?.more && <p class="quiet">There are more keys. Search to see them.</p>}
      </section>
      <div class="grid">
        <section aria-labelledby="hot">
          <h2 id="hot">
            Hot keys <small>last 5 minutes</small>
          </h2>
          {s?.hot.keys.length ? (
            <ul>
              {s.hot.keys.map((h) => (
                <li key={h.key}>
                  <a href={hrefOf(h.key)}>{h.key}</a>
                  <span class="quiet">
                    {span(h.waitedMs)} in {h.waits} waits · {h.refusals} refused
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <p class="empty">No key is waited for.</p>
          )}
        </section>
        <section aria-labelledby="inst">
          <h2 id="inst">Instances</h2>
          {s?.instances.length ? (
            <ul>
              {s.instances.map((i) => (
                <li key={i.id}>
                  <Who of={i} />
                  <span class="quiet">seen {ago(i.seenAt)} ago</span>
                  {i.isSilent && (
                    <button
                      onClick={() =>
                        act({
                          path: 'release-instance',
                          title: `Release everything of ${i.application} on ${i.host}, process ${i.pid}?`,
                          verb: 'Release all',
                          body: { id: i.id },
                        })
                      }
                    >
                      Release all…
                    </button>
                  )}
                </li>
              ))}
            </ul>
          ) : (
            <p class="empty">No instance is known.</p>
          )}
        </section>
        <section aria-labelledby="nodes">
          <h2 id="nodes">Nodes</h2>
          {s && !s.health.hasQuorum && <p class="bad">No lock can be granted.</p>}
          <ul>
            {s?.health.nodes.map((n) => (
              <li key={n.node}>
                {n.node}
                <span class={n.reachable && !n.problem ? 'quiet' : 'bad'}>
                  {n.problem ??
                    (n.reachable ? `${(n.latencyMs ?? 0).toFixed(1)} ms` : 'does not answer')}
                </span>
              </li>
            ))}
          </ul>
        </section>
      </div>
    </>
  );
}

function KeyView({ name, act }: { name: string; act: (deed: Deed) => void }) {
  const [lock, setLock] = useState<Lock>();
  const [seen, setSeen] = useState<{ at: string; text: string }[]>([]);
  const [failed, setFailed] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus();
    let live = true;
    let before = '';
    const look = async () => {
      try {
        const answer = await fetch(`api/lock?${new URLSearchParams({ key: name }).toString()}`);
        if (!answer.ok) throw new Error(`The application answered ${answer.status}.`);
        const now = (await answer.json()) as Lock;
        if (!live) return;
        const text =
          now.state === 'held'
            ? `Held by ${now.holders.map((h) => (h.instance ? `${h.instance.application} ${h.instance.pid}` : 'unknown')).join(', ')}, ${now.line.length} waiting`
            : 'Free';
        if (text !== before)
          setSeen((list) => [{ at: new Date().toISOString(), text }, ...list].slice(0, 50));
        before = text;
        setLock(now);
        setFailed('');
      } catch (error) {
        if (live) setFailed((error as Error).message);
      }
    };
    void look();
    const timer = setInterval(() => void look(), 1500);
    return () => {
      live = false;
      clearInterval(timer);
    };
  }, []);
  return (
    <>
      <p>
        <a href={location.pathname + '#'}>← All keys</a>
      </p>
      <div class="bar">
        <h2 ref={heading} tabIndex={-1} class="key">
          {name}
        </h2>
        {lock?.state === 'held' && (
          <button
            class="danger"
            onClick={() =>
              act({
                path: 'release',
                title: `Release ${name}?`,
                verb: 'Release',
                body: { key: name },
              })
            }
          >
            Release…
          </button>
        )}
      </div>
      {failed && <p class="bad">{failed}</p>}
      {lock && (
        <>
          <p class="quiet">
            {lock.state}
            {lock.mode && ` · ${lock.mode}`}
            {lock.fencingToken !== undefined && ` · fencing token ${lock.fencingToken}`}
          </p>
          <section>
            <h3>Held by</h3>
            {lock.holders.length ? (
              <ul>
                {lock.holders.map((h, i) => (
                  <li key={i}>
                    {h.isForeign ? 'Other software' : <Who of={h.instance} />}
                    <span class="quiet">
                      {[h.method, h.template, h.place].filter(Boolean).join(' · ')} since{' '}
                      {ago(h.since)}
                      {h.remainingMs === null ? ' · no expiry' : ` · ${span(h.remainingMs)} left`}
                    </span>
                    {h.isSilent && <b class="tag warn">does not answer</b>}
                  </li>
                ))}
              </ul>
            ) : (
              <p class="empty">Nobody.</p>
            )}
          </section>
          <section>
            <h3>In line</h3>
            {lock.line.length ? (
              <ol>
                {lock.line.map((w) => (
                  <li key={w.position}>
                    <Who of={w.instance} />
                    <span class="quiet">
                      since {ago(w.since)}
                      {w.isSilent && ' · does not answer'}
                    </span>
                    {w.callers && (
                      <ul>
                        {w.callers.map((c, i) => (
                          <li key={i} class="quiet">
                            {c.method ?? c.place ?? c.template ?? 'a call'}, {ago(c.since)}
                          </li>
                        ))}
                      </ul>
                    )}
                  </li>
                ))}
              </ol>
            ) : (
              <p class="empty">Nobody waits.</p>
            )}
          </section>
          {lock.once && (
            <section>
              <div class="bar">
                <h3>Once-work</h3>
                <button
                  onClick={() =>
                    act({
                      path: 'forget-once',
                      title: `Forget what was done for ${name}?`,
                      verb: 'Forget',
                      body: { key: name },
                    })
                  }
                >
                  Forget…
                </button>
              </div>
              <p>
                {lock.once.state}, {lock.once.attempts} attempts{' '}
                {lock.once.error && <span class="bad">{lock.once.error}</span>}
              </p>
            </section>
          )}
          <section>
            <h3>History</h3>
            <ul>
              {seen.map((e) => (
                <li key={e.at}>
                  {e.text}
                  <span class="quiet">{ago(e.at)} ago</span>
                </li>
              ))}
              {lock.audit.map((e) => (
                <li key={e.at}>
                  {e.action} by {e.by}: {e.reason}
                  <span class="quiet">{ago(e.at)} ago</span>
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </>
  );
}

function Confirm({ deed, done }: { deed: Deed; done: (text: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState('');
  const [failed, setFailed] = useState('');
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => before?.focus();
  }, []);
  const act = async () => {
    const answer = await fetch(`api/${deed.path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-holdfast-board': '1' },
      body: JSON.stringify({ ...deed.body, reason }),
    }).catch(() => undefined);
    if (answer?.ok) done(`${deed.verb}: done.`);
    else
      setFailed(
        answer ? `The application answered ${answer.status}.` : 'The application does not answer.',
      );
  };
  return (
    <dialog ref={dialog} aria-labelledby="ask" onClose={() => done('')}>
      <h2 id="ask">{deed.title}</h2>
      <p>
        {deed.path === 'forget-once'
          ? 'The work will be done again.'
          : 'The holder is told at once. Its work may still be running.'}
      </p>
      <label>
        Reason{' '}
        <input
          value={reason}
          maxLength={500}
          autocomplete="off"
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      {failed && (
        <p class="bad" role="alert">
          {failed}
        </p>
      )}
      <div class="bar end">
        <button onClick={() => dialog.current?.close()}>Cancel</button>
        <button class="danger" disabled={!reason.trim()} onClick={() => void act()}>
          {deed.verb}
        </button>
      </div>
    </dialog>
  );
}

render(<App />, document.body);
