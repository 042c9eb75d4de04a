/** What the browser runs. */
import { render, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { hrefOfAudit, hrefOfView, queryOf, usePlace, type Place } from './address.js';
import type { KeyAnswer, Snapshot, Status } from './answers.js';
import { Audit } from './audit.js';
import { Confirm } from './confirm.js';
import type { Ask, Deed } from './deed.js';
import { useEvents, type Live } from './events.js';
import { Help, useShortcuts } from './help.js';
import { InstanceView } from './instance-view.js';
import { KeyView } from './key-view.js';
import { Overview } from './overview.js';
import { StatusStrip } from './status.js';
import { useSeconds } from './time.js';

const TITLE = document.body.dataset.title ?? 'Locks';

/** So long what was done can be read. */
const SAID_MS = 8_000;

const SETTLED_MS = 250;

function App() {
  useSeconds();
  const place = usePlace();
  const [deed, setDeed] = useState<Deed>();
  const [isHelped, setHelped] = useState(false);
  const [said, say] = useSaid();
  useShortcuts(place, () => setHelped(true));
  const { key } = place;
  return (
    <>
      {key === undefined ? (
        <AllKeys place={place} ask={setDeed} help={() => setHelped(true)} />
      ) : (
        <OneKey key={key} name={key} ask={setDeed} help={() => setHelped(true)} />
      )}
      <p class={said === '' ? 'hidden' : 'said'} role="status">
        {said}
      </p>
      {isHelped && <Help close={() => setHelped(false)} />}
      {deed && (
        <Confirm
          deed={deed}
          close={(text) => {
            setDeed(undefined);
            if (text !== undefined) say(text);
          }}
        />
      )}
    </>
  );
}

interface ViewProps {
  readonly ask: Ask;
  readonly help: () => void;
}

function AllKeys({ place, ask, help }: ViewProps & { readonly place: Place }) {
  const { key: _, isAudit, ...view } = place;
  const search = useSettled(view.search);
  const query = new URLSearchParams(queryOf({ ...view, search })).toString();
  const live = useEvents<Snapshot>('snapshot', query);
  const { data } = live;
  const title = view.instance === '' ? TITLE : `${view.instance} · ${TITLE}`;
  return (
    <Frame title={title} live={live} help={help}>
      {isAudit ? (
        <>
          <h2 tabIndex={-1}>What operators did</h2>
          <Audit entries={data?.audit ?? []} />
        </>
      ) : view.instance === '' ? (
        <Overview snapshot={data} view={view} ask={ask} />
      ) : (
        <InstanceView snapshot={data} view={view} ask={ask} />
      )}
    </Frame>
  );
}

function OneKey({ name, ask, help }: ViewProps & { readonly name: string }) {
  const live = useEvents<KeyAnswer>('key', new URLSearchParams({ key: name }).toString());
  return (
    <Frame title={`${name} · ${TITLE}`} live={live} help={help}>
      <KeyView name={name} answer={live.data} ask={ask} />
    </Frame>
  );
}

let isFirstView = true;

interface FrameProps {
  readonly title: string;
  readonly live: Live<{ readonly status: Status }>;
  readonly help: () => void;
  readonly children: ComponentChildren;
}

/** What is around every view: the name of the page, and whether locks are granted. */
function Frame({ title, live, help, children }: FrameProps) {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = title;
    // Who comes from another view hears where he is.
    if (!isFirstView) main.current?.querySelector('h2')?.focus();
    isFirstView = false;
  }, [title]);
  return (
    <>
      <header>
        <h1>
          <a href={hrefOfView()}>{TITLE}</a>
        </h1>
        <nav class="bar" aria-label="Page">
          <a href={hrefOfAudit()}>Interventions</a>
          <button aria-label="Keyboard shortcuts" aria-keyshortcuts="?" onClick={help}>
            ?
          </button>
        </nav>
      </header>
      <StatusStrip status={live.data?.status} seenMs={live.seenMs} isLost={live.isLost} />
      <main ref={main} class={live.isLost ? 'old' : undefined}>
        {children}
      </main>
    </>
  );
}

/** What was done last, for a while. */
function useSaid(): [string, (text: string) => void] {
  const [said, say] = useState('');
  useEffect(() => {
    if (said === '') return;
    const timer = setTimeout(() => say(''), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return [said, say];
}

/** A text that changes with every letter, when it has stayed the same for a moment. */
function useSettled(text: string): string {
  const [settled, settle] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => settle(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

render(<App />, document.body);
