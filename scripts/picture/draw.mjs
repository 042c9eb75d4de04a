/** Draws scenes as one SVG: a lane for each request, in which the time goes to the right. The same scenes make the same text. */

export const OPERATOR = 'operator';

const WIDTH = 880;
const TIME = { left: 240, right: 630 };
const LANE = 40;
const BAR = 24;
const HEAD = 48;
const SCENE_GAP = 18;
const PADDING = 24;
const LAST_STEP = 4;

const SECONDS_PER_STEP = 0.6;
/** A scene is read before the next one begins. */
const STEPS_PER_SCENE = LAST_STEP + 1;

/** The panel has a background of its own, so it can be read on any page. */
const STYLE = `
  svg { --panel: #ffffff; --edge: #d0d7de; --text: #1f2328; --quiet: #59636e; --hold: #1a7f37; --on-hold: #ffffff; --wait: #ddf4ff; --wait-edge: #0969da; --bad: #cf222e; }
  @media (prefers-color-scheme: dark) {
    svg { --panel: #0d1117; --edge: #3d444d; --text: #f0f6fc; --quiet: #9198a1; --hold: #238636; --wait: #0c2d6b; --wait-edge: #4493f8; --bad: #ff7b72; }
  }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--text); }
  .title { font: 600 15px system-ui, -apple-system, 'Segoe UI', sans-serif; }
  .key { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  .quiet, .key { fill: var(--quiet); }
  .bad { fill: var(--bad); }
  .on-hold { fill: var(--on-hold); }
  .panel { fill: var(--panel); stroke: var(--edge); }
  .axis { stroke: var(--edge); }
  .hold { fill: var(--hold); }
  .wait { fill: var(--wait); stroke: var(--wait-edge); stroke-dasharray: 4 3; }
  .cross { stroke: var(--bad); stroke-width: 3; stroke-linecap: round; }
  .thin { stroke-width: 1.5; }
  .appear { animation: appear 0.3s linear backwards; }
  .grow { animation: grow 1s linear backwards; transform-box: fill-box; transform-origin: left; }
  @keyframes appear { from { opacity: 0; } }
  @keyframes grow { from { transform: scaleX(0); } }
  @media (prefers-reduced-motion: reduce) { .appear, .grow { animation: none; } }
`;

/** Each scene as a sentence, for those who do not see the picture. */
export const describe = (scenes) =>
  scenes.map(({ title, lanes }) => `${title}: ${lanes.map(sentenceOf).join('; ')}.`).join(' ');

function sentenceOf({ who, what, marks }) {
  const seen = marks.map(({ event, answer }) => (answer ? textsOf(answer).join(', ') : event));
  return `${who === OPERATOR ? who : `process ${who}`} ${what}: ${seen.join(', ')}`;
}

export function draw(scenes) {
  const parts = [];
  let top = PADDING + 24;
  scenes.forEach((scene, at) => {
    parts.push(drawScene(scene, top, at * STEPS_PER_SCENE));
    top += HEAD + scene.lanes.length * LANE + SCENE_GAP;
  });
  const height = top + 4;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
<!-- Written by "npm run picture". -->
<title id="title">Two processes of one shop, and the locks that they take</title>
<desc id="desc">${escaped(describe(scenes))}</desc>
<style>${STYLE}</style>
<rect class="panel" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="10"/>
<text class="quiet" x="${PADDING}" y="30">sample/orders in two processes, A and B, on one Redis</text>
<text class="quiet" x="${TIME.right}" y="30" text-anchor="end">time →</text>
<text class="quiet" x="${TIME.right + 16}" y="30">the client gets</text>
${parts.join('\n')}
</svg>
`;
}

function drawScene({ title, key, lanes }, top, firstStep) {
  const drawn = lanes.flatMap((lane, at) => drawLane(lane, top + HEAD + at * LANE, firstStep));
  return [
    `<g>`,
    appear(
      `<text class="title" x="${PADDING}" y="${top + 26}">${escaped(title)} <tspan class="key">${escaped(key)}</tspan></text>`,
      firstStep,
    ),
    ...drawn,
    `</g>`,
  ].join('\n');
}

function drawLane({ who, what, marks }, top, firstStep) {
  const middle = top + LANE / 2;
  const begin = firstStep + marks[0].step;
  return [
    appear(
      `<text x="${PADDING}" y="${middle + 4}"><tspan font-weight="700">${escaped(who)}</tspan> ${escaped(what)}</text>`,
      begin - 0.4,
    ),
    // A command is longer than a request, and has no time to show but its end.
    ...(who === OPERATOR
      ? []
      : [
          `<line class="axis" x1="${TIME.left}" x2="${TIME.right}" y1="${middle}" y2="${middle}"/>`,
        ]),
    ...marks.flatMap((mark, at) => drawMark(mark, marks[at + 1], middle, firstStep)),
  ];
}

/** What an event begins lasts to the next one. */
function drawMark({ step, event, answer }, next, middle, firstStep) {
  const at = firstStep + step;
  if (answer !== undefined) return [drawAnswer(answer, middle, at)];
  if (event === 'acquired') return [bar('hold', 'holds', step, next.step, middle, firstStep)];
  if (event === 'waiting') return [bar('wait', 'waits', step, next.step, middle, firstStep)];
  if (event === 'released') return [];
  if (event === 'done') {
    return [appear(`<path class="cross thin" d="M${xOf(step)} ${middle + 8}v${16 - LANE}"/>`, at)];
  }
  return [cross(xOf(step), middle, at)];
}

function bar(kind, text, from, to, middle, firstStep) {
  const [x, width] = [xOf(from), xOf(to) - xOf(from)];
  const timing = `animation-delay: ${seconds(firstStep + from)}; animation-duration: ${seconds(to - from)}`;
  const label = kind === 'hold' ? 'on-hold' : '';
  return [
    `<rect class="${kind} grow" style="${timing}" x="${x}" y="${middle - BAR / 2}" width="${width}" height="${BAR}" rx="4"/>`,
    appear(
      `<text class="${label}" x="${x + 8}" y="${middle + 4}">${escaped(text)}</text>`,
      firstStep + from + 0.5,
    ),
  ].join('\n');
}

const cross = (x, y, at) =>
  appear(`<path class="cross" d="M${x - 7} ${y - 7}l14 14m0-14l-14 14"/>`, at);

function drawAnswer(answer, middle, at) {
  const [first, second] = textsOf(answer);
  const x = TIME.right + 16;
  const kind = answer.code === undefined ? '' : ' class="bad"';
  const y = middle + (second === undefined ? 4 : -3);
  const lines = [`<text${kind} x="${x}" y="${y}">${escaped(first)}</text>`];
  if (second)
    lines.push(`<text class="quiet" x="${x}" y="${middle + 13}">${escaped(second)}</text>`);
  return appear(lines.join(''), at);
}

function textsOf({ status, code, retryAfter }) {
  const first = code === undefined ? String(status) : `${status} ${code}`;
  return retryAfter === undefined ? [first] : [first, `Retry-After: ${retryAfter}`];
}

const appear = (shape, step) =>
  `<g class="appear" style="animation-delay: ${seconds(step)}">${shape}</g>`;

const seconds = (steps) => `${Number((Math.max(0, steps) * SECONDS_PER_STEP).toFixed(2))}s`;

const xOf = (step) =>
  Math.round(TIME.left + ((step - 1) / (LAST_STEP - 1)) * (TIME.right - TIME.left));

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
