import { describe, expect, it } from '@jest/globals';
import { play } from './play.js';
import { scenarioOf } from './profiles.js';
import { svgOf } from './timeline-svg.js';
import { ownTurn } from './world/settle.js';

/** Its worlds have grants and faults. */
const SEED = 7;

describe('the picture of a world', () => {
  it('has a line for each call, its faults and what was wrong', async () => {
    const played = await ownTurn(() => play(scenarioOf('all', SEED)));
    const svg = svgOf(played, ['overlap: <a> & <b>']);
    const asks = played.events.filter(({ type }) => type === 'ask');
    expect(asks.length).toBeGreaterThan(0);
    for (const ask of asks)
      if ('ask' in ask) expect(svg).toContain(`>${ask.client}#${String(ask.ask)}  `);
    expect(played.faults).toBeGreaterThan(0);
    for (const { kind } of played.scenario.faults.slice(0, 1)) expect(svg).toContain(`>${kind}`);
    expect(svg).toContain('>overlap: &lt;a&gt; &amp; &lt;b&gt;</text>');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });
});
