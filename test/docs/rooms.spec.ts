import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { ROOMS } from '../../scripts/rooms.mjs';

const architecture = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');
const rooms = Object.entries(ROOMS);

/** | `key/` | what | door | `errors`, `time` | */
const ROW = /^\| `(\w+)\/` .*\|([^|]*)\|$/gm;

describe('the table of rooms in docs/architecture.md', () => {
  it('says what each may import, as it is checked', () => {
    const said = Array.from(architecture.matchAll(ROW), ([, room, mayImport = '']) => [
      room,
      Array.from(mayImport.matchAll(/`(\w+)`/g), ([, name]) => name),
    ]);
    expect(said).toEqual(rooms);
  });
});

describe('the picture of the folders in docs/architecture.md', () => {
  const [, picture = ''] = /^```mermaid\n([^]*?)^```$/m.exec(architecture) ?? [];

  it('has each room once', () => {
    const boxes = Array.from(picture.matchAll(/^ {4}(\w+)$/gm), ([, room]) => room);
    expect(boxes.sort()).toEqual(rooms.map(([room]) => room).sort());
  });

  it('has arrows for imports that are allowed, and for no others', () => {
    const arrows = Array.from(picture.matchAll(/^ {2}(\w+) --> (\w+)$/gm));
    expect(arrows.length).toBeGreaterThan(rooms.length / 2);
    for (const [, from, to] of arrows)
      expect(rooms.find(([room]) => room === from)?.[1]).toContain(to);
  });
});
