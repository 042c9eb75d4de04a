import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { ROOMS } from '../../scripts/rooms.mjs';

const architecture = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');

/** | `key/` | what | door | `errors`, `time` | */
const ROW = /^\| `(\w+)\/` .*\|([^|]*)\|$/gm;

describe('the table of rooms in docs/architecture.md', () => {
  it('says what each may import, as it is checked', () => {
    const said = Array.from(architecture.matchAll(ROW), ([, room, mayImport = '']) => [
      room,
      Array.from(mayImport.matchAll(/`(\w+)`/g), ([, name]) => name),
    ]);
    expect(said).toEqual(Object.entries(ROOMS));
  });
});
