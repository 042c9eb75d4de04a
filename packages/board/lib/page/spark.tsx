import type { Snapshot } from './answers.js';

const WIDTH = 240;
const HEIGHT = 32;

const NAMES = { held: 'Held', waiting: 'Waiting', refusals: 'Refused' } as const;

/** What all processes did in the last hour, minute by minute. */
export function LastHour({ hour }: { readonly hour: NonNullable<Snapshot['hour']> }) {
  return (
    <section class="hour" aria-label="The last hour">
      {(Object.keys(NAMES) as (keyof typeof NAMES)[]).map((name) => (
        <Spark key={name} name={NAMES[name]} values={hour.map((minute) => minute[name])} />
      ))}
    </section>
  );
}

function Spark({ name, values }: { readonly name: string; readonly values: readonly number[] }) {
  const most = Math.max(1, ...values);
  const points = values
    .map((value, index) => {
      const x = (index / Math.max(1, values.length - 1)) * WIDTH;
      return `${x.toFixed(1)},${(HEIGHT - 1 - (value / most) * (HEIGHT - 2)).toFixed(1)}`;
    })
    .join(' ');
  const last = values.at(-1) ?? 0;
  return (
    <figure>
      <figcaption>
        {name} <strong>{last}</strong> <span class="quiet">at most {Math.max(0, ...values)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name} in the last hour: at most ${Math.max(0, ...values)}, now ${last}`}
      >
        <polyline points={points} />
      </svg>
    </figure>
  );
}
