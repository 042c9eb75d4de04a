import { table } from './table.mjs';

/** One row for each scenario that counts locks: Holdfast beside the best run of the best peer, and beside the bare commands. */
export function overview(results) {
  const rows = results.flatMap(({ title, rows: all }) => {
    const [holdfast] = all;
    if (holdfast?.best === undefined) return [];
    const peers = all.filter(({ kind }) => kind === 'peer').sort((a, b) => b.best - a.best);
    return [
      {
        title,
        perSecond: holdfast.perSecond,
        peer: peers[0] && holdfast.perSecond / peers[0].best,
        name: peers[0]?.label ?? '–',
        bare: holdfast.toBare,
        p50: holdfast.p50,
        p99: holdfast.p99,
        longest: holdfast.longest,
        jain: holdfast.jain,
        peerP99: peers[0]?.p99,
        peerLongest: peers[0]?.longest,
        peerJain: peers[0]?.jain,
      },
    ];
  });
  return table(
    [
      { name: 'title', head: '' },
      { name: 'perSecond', head: 'Holdfast, per second', digits: 0 },
      { name: 'bare', head: '× bare commands', digits: 2 },
      { name: 'peer', head: '× best run of the best peer', digits: 2 },
      { name: 'name', head: 'which is' },
      { name: 'p50', head: 'median wait, ms', digits: 2 },
      { name: 'p99', head: 'p99, ms', digits: 1 },
      { name: 'longest', head: 'longest, ms', digits: 0 },
      { name: 'jain', head: "Jain's index", digits: 3 },
      { name: 'peerP99', head: 'that peer: p99, ms', digits: 1 },
      { name: 'peerLongest', head: 'longest, ms', digits: 0 },
      { name: 'peerJain', head: "Jain's index", digits: 3 },
    ],
    rows,
  );
}
