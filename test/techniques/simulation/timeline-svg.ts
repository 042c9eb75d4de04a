/** A world as a picture: a line for each call, the faults across all of them. */
import type { SimEvent } from './history.js';
import type { Played } from './play.js';

const LABELS_PX = 150;
const LANE_PX = 22;
const BAR_PX = 14;
const HEAD_PX = 40;
const FOOT_PX = 60;

/** The time between two events is drawn by its logarithm: a request takes a millisecond, and a lease seconds. */
const NARROWEST_PX = 3;
const PX_PER_DECADE = 14;

const WAITS = '#d1d5db';
const HOLDS = { exclusive: '#2563eb', shared: '#16a34a', limited: '#9333ea' };
const FAULT = '#dc2626';

/** What one call did, and when; `undefined` for what did not happen. */
interface Lane {
  readonly name: string;
  readonly keys: string;
  readonly mode: string;
  readonly askedAt: number;
  grantedAt?: number;
  endedAt?: number;
  end?: string;
}

type Scale = (at: number) => number;

/** @param violations what was wrong, for the foot of the picture */
export function svgOf({ scenario, events }: Played, violations: readonly string[]): string {
  const lanes = lanesOf(events);
  const x = scaleOf(events);
  const lastAt = events.at(-1)?.at ?? 0;
  const width = Math.max(700, x(lastAt) + 80);
  const lanesEnd = HEAD_PX + lanes.length * LANE_PX;
  const height = lanesEnd + FOOT_PX + violations.length * 16;
  const { profile, seed, servers } = scenario;
  const title = `profile ${profile}, seed ${String(seed)}, ${String(servers.length)} servers; milliseconds`;
  const parts = [
    `<rect width="${String(width)}" height="${String(height)}" fill="#ffffff"/>`,
    text(10, 20, title, 'font-weight="bold"'),
    ...events.filter(isFault).map((event) => {
      const kind = scenario.faults[event.fault]?.kind ?? '';
      const word = event.type === 'healed' ? `${kind} is over` : kind;
      return mark(x(event.at), lanesEnd, word);
    }),
    ...lanes.flatMap((lane, index) => drawn(lane, HEAD_PX + index * LANE_PX, { x, lastAt })),
    ...violations.map((violation, index) =>
      text(10, lanesEnd + FOOT_PX + index * 16, violation, `fill="${FAULT}"`),
    ),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${String(width)}" height="${String(height)}" font-family="system-ui, sans-serif" font-size="11">
${parts.join('\n')}
</svg>
`;
}

function lanesOf(events: readonly SimEvent[]): readonly Lane[] {
  const lanes = new Map<string, Lane>();
  for (const event of events) {
    if (!('ask' in event)) continue;
    const name = `${event.client}#${String(event.ask)}`;
    if (event.type === 'ask') {
      const { keys, mode = 'exclusive', at: askedAt } = event;
      lanes.set(name, { name, keys: keys.join(' '), mode, askedAt });
    }
    const lane = lanes.get(name);
    if (lane === undefined) continue;
    if (event.type === 'granted') lane.grantedAt = event.at;
    else if (ENDS.has(event.type)) {
      lane.endedAt ??= event.at;
      lane.end ??= event.type;
    }
  }
  return [...lanes.values()];
}

/** What ends a call for its caller. */
const ENDS = new Set<SimEvent['type']>(['released', 'refused', 'failed', 'lost', 'once']);

const isFault = (event: SimEvent): event is SimEvent & { readonly type: 'fault' | 'healed' } =>
  event.type === 'fault' || event.type === 'healed';

function scaleOf(events: readonly SimEvent[]): Scale {
  const places = new Map<number, number>();
  let [x, before] = [LABELS_PX, events[0]?.at ?? 0];
  for (const { at } of events) {
    if (at > before) x += NARROWEST_PX + PX_PER_DECADE * Math.log10(1 + 10 * (at - before));
    places.set(at, x);
    before = at;
  }
  return (at) => places.get(at) ?? x;
}

function drawn(
  lane: Lane,
  top: number,
  { x, lastAt }: { readonly x: Scale; readonly lastAt: number },
): readonly string[] {
  const { name, keys, mode, askedAt, grantedAt, endedAt = lastAt, end = 'no end' } = lane;
  const baseline = top + BAR_PX - 3;
  const waitsUntil = grantedAt ?? endedAt;
  return [
    text(10, baseline, `${name}  ${keys}`),
    bar(x(askedAt), x(waitsUntil), top, WAITS),
    ...(grantedAt === undefined ? [] : [bar(x(grantedAt), x(endedAt), top, colourOf(mode))]),
    text(x(endedAt) + 4, baseline, `${end} ${endedAt.toFixed(1)}`, 'fill="#6b7280"'),
  ];
}

function colourOf(mode: string): string {
  if (mode.startsWith('limit')) return HOLDS.limited;
  return mode === 'shared' ? HOLDS.shared : HOLDS.exclusive;
}

const bar = (from: number, to: number, top: number, colour: string): string =>
  `<rect x="${px(from)}" y="${String(top)}" width="${px(Math.max(1, to - from))}" height="${String(BAR_PX)}" fill="${colour}"/>`;

const mark = (at: number, bottom: number, word: string): string =>
  `<line x1="${px(at)}" y1="${String(HEAD_PX - 6)}" x2="${px(at)}" y2="${String(bottom + 4)}" stroke="${FAULT}" stroke-dasharray="3 2"/>` +
  `<text x="${px(at)}" y="${String(bottom + 12)}" fill="${FAULT}" transform="rotate(20 ${px(at)} ${String(bottom + 12)})">${escaped(word)}</text>`;

const text = (at: number, y: number, content: string, attributes = ''): string =>
  `<text x="${px(at)}" y="${String(y)}" ${attributes}>${escaped(content)}</text>`;

const px = (value: number): string => value.toFixed(1);

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

const escaped = (content: string): string =>
  content.replace(/[&<>]/g, (sign) => ESCAPES[sign] ?? sign);
