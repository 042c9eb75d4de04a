import { describe, expect, it } from '@jest/globals';
import { play } from './play.js';
import { scenarioOf } from './profiles.js';
import { svgOf } from './timeline-svg.js';
import { ownTurn } from './world/settle.js';

describe('the picture of a world', () => {
  it('has a line for each call, its faults and what was wrong', async () => {
    const seeds = Array.from({ length: 100 }, (_, seed) => seed);
    const scenario = seeds.map((seed) => scenarioOf('all', seed)).find((each) => each.faults[0]);
    const played = await ownTurn(() => play(scenario!));
    const svg = svgOf(played, ['overlap: <a> & <b>']);
    const asks = played.events.filter(({ type }) => type === 'ask');
    expect(asks.length).toBeGreaterThan(0);
    for (const ask of asks)
      if ('ask' in ask) expect(svg).toContain(`>${ask.client}#${String(ask.ask)}  `);
    expect(svg).toContain(`>${scenario!.faults[0]!.kind}`);
    expect(svg).toContain('>overlap: &lt;a&gt; &amp; &lt;b&gt;</text>');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });
});
