/** What the browser runs. */
import { render, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { hrefOfAll, usePlace, type Place } from './address.js';
import type { KeyAnswer, Snapshot } from './answers.js';
import { Confirm } from './confirm.js';
import type { Ask, Deed } from './deed.js';
import { useEvents } from './events.js';
import { KeyView } from './key-view.js';
import { Overview } from './overview.js';
import { useSeconds } from './time.js';

const TITLE = document.body.dataset.title ?? 'Locks';

/** So long what was done can be read. */
const SAID_MS = 8_000;

const SETTLED_MS = 250;

function App() {
  useSeconds();
  const place = usePlace();
  const [deed, setDeed] = useState<Deed>();
  const [said, say] = useSaid();
  const { key } = place;
  return (
    <>
      {key === undefined ? (
        <AllKeys place={place} ask={setDeed} />
      ) : (
        <OneKey key={key} name={key} ask={setDeed} />
      )}
      <p class={said === '' ? 'hidden' : 'said'} role="status">
        {said}
      </p>
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

function AllKeys({ place, ask }: { readonly place: Place; readonly ask: Ask }) {
  const prefix = useSettled(place.prefix);
  const query = new URLSearchParams({ prefix }).toString();
  const { data, isLost } = useEvents<Snapshot>('snapshot', query);
  return (
    <Frame title={TITLE} isLost={isLost} isThere={data !== undefined} problem={data?.problem}>
      <Overview snapshot={data} prefix={place.prefix} ask={ask} />
    </Frame>
  );
}

function OneKey({ name, ask }: { readonly name: string; readonly ask: Ask }) {
  const query = new URLSearchParams({ key: name }).toString();
  const { data, isLost } = useEvents<KeyAnswer>('key', query);
  return (
    <Frame
      title={`${name} · ${TITLE}`}
      isLost={isLost}
      isThere={data !== undefined}
      problem={data?.problem}
    >
      <KeyView name={name} answer={data} ask={ask} />
    </Frame>
  );
}

let isFirstView = true;

interface FrameProps {
  readonly title: string;
  readonly isLost: boolean;
  readonly isThere: boolean;
  readonly problem: string | undefined;
  readonly children: ComponentChildren;
}

/** What is around every view: the name of the page, and whether what it shows is so. */
function Frame({ title, isLost, isThere, problem, children }: FrameProps) {
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
          <a href={hrefOfAll()}>{TITLE}</a>
        </h1>
        <State isLost={isLost} isThere={isThere} />
      </header>
      <main ref={main}>
        {problem !== undefined && (
          <p class="banner" role="alert">
            {problem}
          </p>
        )}
        {children}
      </main>
    </>
  );
}

function State({ isLost, isThere }: Pick<FrameProps, 'isLost' | 'isThere'>) {
  if (isLost)
    return (
      <p class="state lost" role="alert">
        Connection lost. What you see is old. Trying again…
      </p>
    );
  return <p class={isThere ? 'state live' : 'state'}>{isThere ? 'Live' : 'Connecting…'}</p>;
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
