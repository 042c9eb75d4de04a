const WIDTH = 860;
const LABEL_WIDTH = 300;
const BAR_HEIGHT = 16;
const GAP = 5;
const COLOURS = { holdfast: '#2563eb', peer: '#9ca3af', bare: '#4b5563' };

/**
 * Bars, on a logarithmic scale: the libraries differ by factors.
 *
 * @param {readonly { title: string, bars: readonly { label: string, kind: string, value: number, text: string }[] }[]} panels
 */
export function plot(panels, footnote) {
  const parts = [];
  let y = 10;
  for (const { title, bars } of panels) {
    y += 22;
    parts.push(text(10, y, title, 'font-weight="bold" font-size="13"'));
    y += 10;
    const width = scale(bars.map(({ value }) => value));
    for (const { label, kind, value, text: figure } of bars) {
      const middle = y + BAR_HEIGHT - 4;
      const length = width(value).toFixed(1);
      parts.push(
        text(LABEL_WIDTH - 8, middle, label, 'text-anchor="end"'),
        `<rect x="${LABEL_WIDTH}" y="${y}" width="${length}" height="${BAR_HEIGHT}" fill="${COLOURS[kind]}"/>`,
        text(LABEL_WIDTH + Number(length) + 6, middle, figure),
      );
      y += BAR_HEIGHT + GAP;
    }
    y += 8;
  }
  y += 14;
  parts.push(text(10, y, footnote, 'fill="#6b7280" font-size="11"'));
  const height = y + 14;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
${parts.join('\n')}
</svg>
`;
}

function scale(values) {
  const known = values.filter((value) => value > 0);
  const floor = Math.min(...known) / 2;
  const span = Math.log(Math.max(...known) / floor);
  const room = WIDTH - LABEL_WIDTH - 90;
  return (value) => (value > 0 ? Math.max(2, (Math.log(value / floor) / span) * room) : 0);
}

const text = (x, y, content, attributes = '') =>
  `<text x="${x}" y="${y}" ${attributes}>${escape(content)}</text>`;

const escape = (content) =>
  content.replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[sign]);
