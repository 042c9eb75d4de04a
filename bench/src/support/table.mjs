/**
 * @typedef {object} Column
 * @property {string} name key of the cell in a row
 * @property {string} head
 * @property {number} [digits] after the point
 *
 * @param {readonly Column[]} columns
 * @param {readonly Record<string, unknown>[]} rows
 * @returns a Markdown table, aligned
 */
export function table(columns, rows) {
  const cells = rows.map((row) => columns.map((column) => cell(row[column.name], column)));
  const heads = columns.map(({ head }) => head);
  const widths = heads.map((head, at) =>
    Math.max(3, head.length, ...cells.map((line) => line[at].length)),
  );
  const isNumber = columns.map(({ digits }) => digits !== undefined);
  const line = (texts) => {
    const padded = texts.map((text, at) =>
      isNumber[at] ? text.padStart(widths[at]) : text.padEnd(widths[at]),
    );
    return `| ${padded.join(' | ')} |`;
  };
  const rule = widths.map((width, at) =>
    isNumber[at] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  );
  return [line(heads), line(rule), ...cells.map(line)].join('\n');
}

function cell(value, { digits }) {
  if (value === undefined || value === null || Number.isNaN(value)) return '–';
  return typeof value === 'number' && digits !== undefined ? number(value, digits) : String(value);
}

/** @param {number} digits after the point, of small numbers */
export function number(value, digits) {
  return value.toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
