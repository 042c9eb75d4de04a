/** The picture as shapes of SVG. Colours are classes, so that the page decides them for light and dark. */
import type { Mark, NodeLane, Picture, ProcessLane, Span, Trouble } from './picture.js';
import { nodeName, processName, seconds, shortToken } from './sentences.js';

export interface Shape {
  readonly tag: 'rect' | 'text' | 'line' | 'path';
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly text?: string;
  /** The text that a pointer shows on it. */
  readonly title?: string;
}

/** A lane's place, for its label beside the picture. */
export interface LanePlace {
  readonly name: string;
  readonly top: number;
  readonly height: number;
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly lanes: readonly LanePlace[];
  readonly shapes: readonly Shape[];
}

const HEAD = 22;
/** Above the bars of a lane: signs, and what is wrong. */
const BAND = 14;
const ROW = 24;
const BAR = 20;
const GAP = 6;
/** A letter of the labels is about so wide. */
const LETTER = 6.2;

const WORDS: Readonly<Record<Mark['kind'], string>> = {
  renewed: 'renews its lease',
  jeopardy: 'could not renew its lease',
  lost: 'detects that it has lost the lock',
  accepted: 'write accepted',
  refused: 'write refused',
};

const SIGNS: Readonly<Record<Mark['kind'], string>> = {
  renewed: '↻',
  jeopardy: '!',
  lost: '✕',
  accepted: '✓',
  refused: '✕',
};

/** @param pxPerSecond how wide a second is */
export function drawingOf(picture: Picture, lengthMs: number, pxPerSecond: number): Drawing {
  const x: X = (ms) => Math.round((ms * pxPerSecond) / 10) / 100;
  const wholeMs = Math.max(lengthMs, picture.endMs);
  const width = Math.ceil(x(wholeMs)) + 24;
  const writes = inRows(picture.writes.map((mark) => drawnWrite(mark, x)));
  const drawn = [
    ...picture.processes.map((lane) => drawnProcess(lane, x)),
    ...picture.nodes.map((lane) => drawnNode(lane, x)),
    { name: 'database', height: writes.height, shapes: writes.shapes },
  ];
  const lanes: LanePlace[] = [];
  const shapes: Shape[] = [];
  let top = HEAD;
  for (const { name, height, shapes: own } of drawn) {
    lanes.push({ name, top, height });
    shapes.push(rect('lane', 0, top, width, height), ...own.map((shape) => lowered(shape, top)));
    top += height + GAP;
  }
  const now = x(picture.endMs);
  const present = line('now', now, HEAD - 6, now, top - GAP);
  return { width, height: top, lanes, shapes: [...axis(wholeMs, x, top), ...shapes, present] };
}

/** A lane by itself, from its own top. */
interface DrawnLane {
  readonly name: string;
  readonly height: number;
  readonly shapes: readonly Shape[];
}

function drawnProcess({ process, rows, troubles, marks }: ProcessLane, x: X): DrawnLane {
  const name = processName(process);
  const height = BAND + rows.length * ROW;
  return {
    ...{ name, height },
    shapes: [
      ...drawnTroubles(troubles, name, x, height),
      ...rows.flatMap((spans, row) =>
        spans.flatMap((span) => drawnSpan(span, name, x, BAND + row * ROW)),
      ),
      ...marks.map((mark) => drawnMark(mark, x)),
    ],
  };
}

function drawnNode({ node, sayings, troubles }: NodeLane, x: X): DrawnLane {
  const name = nodeName(node);
  const height = BAND + ROW;
  const bars = sayings.flatMap(({ holders, fromMs, toMs }) => {
    const names = holders.map(processName).join(', ');
    const facts = { 'data-kind': 'says', 'data-node': name, 'data-holders': names };
    const title = `${name}: ${names}, ${range(fromMs, toMs)}`;
    return bar({ ...facts, ...times(fromMs, toMs) }, 'says', names, title, x, BAND);
  });
  return { name, height, shapes: [...drawnTroubles(troubles, name, x, height), ...bars] };
}

/** Each label in the first row in which there is room for it. */
function inRows(labels: readonly Label[]): Pick<DrawnLane, 'height' | 'shapes'> {
  const ends: number[] = [0];
  const shapes = labels.flatMap(({ left, right, shapes: own }) => {
    const free = ends.findIndex((end) => end <= left);
    const row = free === -1 ? ends.length : free;
    ends[row] = right;
    return own.map((shape) => lowered(shape, row * ROW));
  });
  return { height: ends.length * ROW, shapes };
}

interface Label {
  readonly left: number;
  readonly right: number;
  readonly shapes: readonly Shape[];
}

/** The same shape, so much further down. */
function lowered(shape: Shape, by: number): Shape {
  const moved = Object.entries(shape.attributes).map(([name, value]) => [
    name,
    /^y[12]?$/.test(name) ? Number(value) + by : value,
  ]);
  return { ...shape, attributes: Object.fromEntries(moved) as Shape['attributes'] };
}

type X = (ms: number) => number;

const range = (fromMs: number, toMs: number): string => `${seconds(fromMs)} to ${seconds(toMs)}`;
const times = (fromMs: number, toMs: number) => ({
  'data-from': Math.round(fromMs),
  'data-to': Math.round(toMs),
});

function rect(kind: string, x: number, y: number, width: number, height: number): Shape {
  return { tag: 'rect', attributes: { class: kind, x, y, width: Math.max(width, 1), height } };
}

function line(kind: string, x1: number, y1: number, x2: number, y2: number): Shape {
  return { tag: 'line', attributes: { class: kind, x1, y1, x2, y2 } };
}

/** A bar with its text, if that fits into it. */
function bar(
  facts: Readonly<Record<string, string | number>>,
  kind: string,
  label: string,
  title: string,
  x: X,
  y: number,
): readonly Shape[] {
  const left = x(Number(facts['data-from']));
  const width = x(Number(facts['data-to'])) - left;
  const { tag, attributes } = rect(`bar ${kind}`, left, y, width, BAR);
  const shape: Shape = { tag, attributes: { ...attributes, ...facts, rx: 3 }, title };
  if (label.length * LETTER + 8 > width) return [shape];
  const text: Shape = {
    tag: 'text',
    attributes: { class: `label on-${kind.replace(/ .*/, '')}`, x: left + 4, y: y + 14 },
    text: label,
  };
  return [shape, text];
}

function drawnSpan(span: Span, name: string, x: X, y: number): readonly Shape[] {
  const { kind, call, mode, token, fromMs, toMs } = span;
  const shown = token === undefined ? '' : shortToken(token);
  const words = { waits: 'waits', holds: `holds ${shown}`, over: `lease over ${shown}` }[kind];
  const label =
    kind === 'waits' ? words : words.length * LETTER + 8 > x(toMs - fromMs) ? shown : words;
  const facts = {
    ...{ 'data-kind': kind, 'data-process': name, 'data-call': call, 'data-mode': mode },
    ...(token !== undefined && { 'data-token': token }),
    ...times(fromMs, toMs),
  };
  const title = `${name} ${words}${mode === 'shared' ? ', shared' : ''}, ${range(fromMs, toMs)}`;
  const kindAndMode = kind === 'holds' && mode === 'shared' ? 'holds shared' : kind;
  return bar(facts, kindAndMode, label, title, x, y);
}

/** Behind the bars; its words are above them. */
function drawnTroubles(troubles: readonly Trouble[], name: string, x: X, height: number) {
  const cutsFrom = new Map<number, string[]>();
  const shapes = troubles.map(({ kind, node = 0, fromMs, toMs }): Shape => {
    const facts = { 'data-kind': kind, 'data-lane': name, ...times(fromMs, toMs) };
    if (kind === 'cut') {
      cutsFrom.set(fromMs, [...(cutsFrom.get(fromMs) ?? []), nodeName(node)]);
      const shape = line('cut', x(fromMs), height - 1 - node, x(toMs), height - 1 - node);
      const title = `${name} is cut from ${nodeName(node)}, ${range(fromMs, toMs)}`;
      const attributes = { ...shape.attributes, ...facts, 'data-node': nodeName(node) };
      return { ...shape, attributes, title };
    }
    const { tag, attributes } = rect(`trouble ${kind}`, x(fromMs), 0, x(toMs) - x(fromMs), height);
    const title = `${name}: ${kind}, ${range(fromMs, toMs)}`;
    return { tag, attributes: { ...attributes, ...facts }, title };
  });
  const words = troubles
    .filter(({ kind }) => kind !== 'cut')
    .filter(({ kind, fromMs, toMs }) => kind.length * LETTER < x(toMs) - x(fromMs))
    .map(({ kind, fromMs }) => word(kind, x(fromMs)));
  const cuts = [...cutsFrom].map(([fromMs, nodes]) =>
    word(`cut from ${nodes.join(', ')}`, x(fromMs)),
  );
  return [...shapes, ...words, ...cuts];
}

const word = (text: string, x: number): Shape => ({
  ...{ tag: 'text', attributes: { class: 'label word', x: x + 3, y: BAND - 3 }, text },
});

function drawnMark({ kind, atMs, process, token }: Mark, x: X, y = BAND - 2): Shape {
  const facts = { 'data-kind': kind, 'data-process': processName(process) };
  return {
    tag: 'text',
    attributes: {
      ...{ class: `mark ${kind}`, x: x(atMs), y, 'text-anchor': 'middle' },
      ...{ ...facts, 'data-token': token ?? '', 'data-at': Math.round(atMs) },
    },
    text: SIGNS[kind],
    title: `${processName(process)} ${WORDS[kind]}, ${seconds(atMs)}`,
  };
}

function drawnWrite(mark: Mark, x: X): Label {
  const y = 16;
  const sign = drawnMark(mark, x, y);
  const { kind, process, atMs, token } = mark;
  const title = `${WORDS[kind]}: ${processName(process)}, ${seconds(atMs)}`;
  const text = `${processName(process)} ${token === undefined ? '' : shortToken(token)}`;
  const attributes = { class: `label write ${kind}`, x: x(atMs) + 8, y };
  return {
    left: x(atMs) - 6,
    right: x(atMs) + 14 + text.length * LETTER,
    shapes: [
      { ...sign, title },
      { tag: 'text', attributes, text, title },
    ],
  };
}

function axis(lengthMs: number, x: X, height: number): readonly Shape[] {
  const shapes: Shape[] = [];
  for (let ms = 0; ms <= lengthMs; ms += 1_000) {
    shapes.push(line('grid', x(ms), HEAD - 6, x(ms), height - GAP));
    const attributes = { class: 'tick', x: x(ms) + 2, y: 12 };
    shapes.push({ tag: 'text', attributes, text: `${String(ms / 1_000)} s` });
  }
  return shapes;
}
