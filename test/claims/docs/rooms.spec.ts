import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { PACKAGES, ROOMS } from '../../../scripts/rooms.mjs';

const architecture = readFileSync(
  new URL('../../../docs/internals/architecture.md', import.meta.url),
  'utf8',
);
const rooms = Object.entries(ROOMS);

/** | `key/` | what | door | `errors`, `time` | */
const ROW = /^\| `(\w+)\/` .*\|([^|]*)\|$/gm;

describe('the table of rooms in docs/internals/architecture.md', () => {
  it('says what each may import, as it is checked', () => {
    const said = Array.from(architecture.matchAll(ROW), ([, room, mayImport = '']) => [
      room,
      Array.from(mayImport.matchAll(/`(\w+)`/g), ([, name]) => name),
    ]);
    expect(said).toEqual(rooms);
  });
});

/** | `@nestjs-holdfast/cli` | what | `nestjs-holdfast/admin` | */
const PACKAGE_ROW = /^\| `@nestjs-holdfast\/(\w+)` .*\|([^|]*)\|$/gm;

describe('the table of packages in docs/internals/architecture.md', () => {
  it('says which entries each imports, as it is checked', () => {
    const said = Array.from(architecture.matchAll(PACKAGE_ROW), ([, name, imports = '']) => [
      name,
      Array.from(imports.matchAll(/`([^`]+)`/g), ([, entry]) => entry),
    ]);
    expect(said).toEqual(Object.entries(PACKAGES));
  });
});

/** `nest` of `nestjs-holdfast`, `admin` of `nestjs-holdfast/admin`. */
const boxOf = (entry: string): string =>
  entry === 'nestjs-holdfast' ? 'nest' : entry.replace(/^.*\//, '');

describe('the picture of the folders in docs/internals/architecture.md', () => {
  const packages = Object.entries(PACKAGES).map(
    ([name, entries]) => [name, entries.map(boxOf)] as const,
  );
  const allowed = [...rooms, ...packages];
  const [, picture = ''] = /^```mermaid\n([^]*?)^```$/m.exec(architecture) ?? [];

  it('has each room and each package once', () => {
    const boxes = Array.from(picture.matchAll(/^ {4}(\w+)$/gm), ([, room]) => room);
    expect(boxes.sort()).toEqual(allowed.map(([name]) => name).sort());
  });

  it('has arrows for imports that are allowed, and for no others', () => {
    const arrows = Array.from(picture.matchAll(/^ {2}(\w+) --> (\w+)$/gm));
    expect(arrows.length).toBeGreaterThan(rooms.length / 2);
    for (const [, from, to] of arrows)
      expect(allowed.find(([name]) => name === from)?.[1]).toContain(to);
  });
});
