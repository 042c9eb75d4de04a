/**
 * `npm run picture`: plays the scenes of scripts/picture/scenes.mjs with two processes of the shop (sample/orders) and one Redis server, and
 * draws what happened in docs/picture.svg, which README.md shows. test/sample/picture.spec.ts fails when the two differ.
 *
 * PICTURE_FILE is another file to write, PICTURE_APP another program of the shop.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runToTheEnd, startRedis } from './demo/processes.mjs';
import { draw } from './picture/draw.mjs';
import { playScenes } from './picture/scenes.mjs';
import { Shop } from './picture/shop.mjs';

const pathOf = (file) => fileURLToPath(new URL(file, import.meta.url));
const APP = process.env.PICTURE_APP ?? pathOf('../sample/orders/dist/main.js');
const FILE = process.env.PICTURE_FILE ?? pathOf('../docs/picture.svg');

const say = (line) => console.log(`picture: ${line}`);

await runToTheEnd('picture', async () => {
  const redisUrl = await startRedis(say);
  const shops = await Promise.all(['A', 'B'].map((name) => Shop.open(name, APP, redisUrl)));
  const scenes = await playScenes(shops, redisUrl);
  writeFileSync(FILE, draw(scenes));
  say(`${scenes.length} scenes are in ${FILE}`);
});
