import type { Status } from './answers.js';
import { runbook } from './parts.js';
import { exact, now, span } from './time.js';

/** From here on, in ms, the page says how old is what it shows. */
const OLD_MS = 3_000;

interface StripProps {
  readonly status: Status | undefined;
  readonly seenMs: number | undefined;
  readonly isLost: boolean;
}

/** Whether locks are granted now; if not, since when, why, and what to do. */
export function StatusStrip({ status, seenMs, isLost }: StripProps) {
  const ageMs = seenMs === undefined ? 0 : now() - seenMs;
  if (isLost)
    return (
      <Strip level="bad" text="The application does not answer">
        <p>
          {seenMs === undefined
            ? 'Nothing is known. Trying again…'
            : `What you see is ${span(ageMs)} old. Trying again…`}
        </p>
      </Strip>
    );
  if (status === undefined) return <Strip level="none" text="Connecting…" />;
  const { level, text, since, details, section } = status;
  return (
    <Strip level={level} text={text}>
      {since !== undefined && (
        <p>
          since {exact(since)}, for {span(now() - Date.parse(since))}
        </p>
      )}
      {details.map((detail) => (
        <p key={detail}>{detail}</p>
      ))}
      {section !== undefined && (
        <p>
          <a href={runbook(section)}>What to do</a>
        </p>
      )}
      {ageMs >= OLD_MS && <p>What you see is {span(ageMs)} old.</p>}
    </Strip>
  );
}

interface Shown {
  readonly level: Status['level'] | 'none';
  readonly text: string;
  readonly children?: preact.ComponentChildren;
}

const Strip = ({ level, text, children }: Shown) => (
  <section class={`strip ${level}`} role={level === 'bad' ? 'alert' : 'status'} aria-label="Status">
    <p class="state">{text}</p>
    {children}
  </section>
);
