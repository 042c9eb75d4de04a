import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { PACKAGES } from '../../../scripts/rooms.mjs';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly bin?: object;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly publishConfig: object;
}

const manifestAt = (place: string): Manifest =>
  JSON.parse(readFileSync(`${place}/package.json`, 'utf8')) as Manifest;
const library = manifestAt('.');

describe.each(readdirSync('packages'))('packages/%s', (name) => {
  const manifest = manifestAt(`packages/${name}`);

  it('has the version of the library, and needs the library and other packages in this version', () => {
    expect(Object.keys(PACKAGES)).toContain(name);
    expect(manifest).toMatchObject({
      name: `@nestjs-holdfast/${name}`,
      version: library.version,
      publishConfig: { access: 'public', provenance: true },
    });
    const { dependencies = {}, peerDependencies } = manifest;
    for (const [other, range] of Object.entries(dependencies))
      if (other.startsWith('@nestjs-holdfast/')) expect(range).toBe(library.version);
    for (const [other, range] of Object.entries(peerDependencies))
      expect(range).toBe(
        other === library.name ? `^${library.version}` : library.peerDependencies[other],
      );
  });

  it('has the licence of the library, and a README', () => {
    expect(readFileSync(`packages/${name}/LICENSE`, 'utf8')).toBe(readFileSync('LICENSE', 'utf8'));
    expect(readFileSync(`packages/${name}/README.md`, 'utf8')).toMatch(`# ${manifest.name}\n`);
  });
});

it('the command belongs to the command line alone', () => {
  const withCommands = readdirSync('packages').filter(
    (name) => manifestAt(`packages/${name}`).bin !== undefined,
  );
  expect([library.bin, withCommands]).toEqual([undefined, ['cli']]);
});
