/** The rows of the demo's table, as text: a column for each round, a row for each kind of answer and of number. */
export function tableOf(results) {
  const row = (label, cellOf) => [label, ...results.map((result) => String(cellOf(result)))];
  const answers = new Set(results.flatMap((result) => [...result.answers.keys()]).sort());
  return aligned([
    row('', ({ title }) => title),
    row('double payments', ({ doublePayments }) => doublePayments),
    ...[...answers].map((answer) => row(answer, (result) => result.answers.get(answer) ?? 0)),
    row('p50, ms', ({ latenciesMs }) => Math.round(percentile(latenciesMs, 50))),
    row('p99, ms', ({ latenciesMs }) => Math.round(percentile(latenciesMs, 99))),
    row('all together, s', ({ totalMs }) => (totalMs / 1_000).toFixed(2)),
  ]);
}

function aligned(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((cells) => cells[column].length)));
  const pad = (cell, column) =>
    column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]);
  return rows.map((cells) => cells.map(pad).join('   ')).join('\n');
}

function percentile(values, percent) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil((sorted.length * percent) / 100) - 1];
}
