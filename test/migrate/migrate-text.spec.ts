import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { migrateText, type Migrated } from '../../lib/migrate/migrate-text.js';
import { Project } from '../../lib/migrate/project.js';
import { brokenLinksIn } from '../docs/links.js';
import { fixtures, update } from './fixtures.js';

const migrated = (name: string, text: string, project = new Project([text])): Migrated =>
  migrateText(ts, `/application/${name}`, text, project);

const textAfter = (name: string, text: string): string => {
  const result = migrated(name, text);
  return result.kind === 'changed' ? result.text : text;
};

describe('the migration of a file', () => {
  it.each(fixtures)('rewrites what is certain of $name, and marks the rest', (fixture) => {
    const text = textAfter(fixture.name, fixture.input);
    update(fixture, text);
    expect(text).toBe(fixture.expected);
  });

  it.each(fixtures)('changes nothing of $name a second time', ({ name, expected }) => {
    expect(migrated(name, expected)).toEqual({ kind: 'untouched' });
  });

  it.each(fixtures)('keeps the line ends of $name', ({ name, input, expected }) => {
    const text = textAfter(name, input.replaceAll('\n', '\r\n'));
    expect(text).toBe(expected.replaceAll('\n', '\r\n'));
  });

  it('links to headings of the guide', () => {
    const anchors = fixtures.flatMap(({ expected }) =>
      Array.from(expected.matchAll(/docs\/migrating\.md(#\S+)$/gm), ([, anchor]) => anchor),
    );
    expect(new Set(anchors).size).toBeGreaterThan(4);
    const links = anchors.map((anchor) => `[guide](docs/migrating.md${anchor})`).join(' ');
    expect(brokenLinksIn('README.md', links, `${process.cwd()}/`)).toEqual([]);
  });

  it('leaves a file alone that names none of the packages', () => {
    const text = "// redlock\nimport { Redlock } from 'nestjs-holdfast/redlock';\nlet x = ;";
    expect(migrated('a.ts', text)).toEqual({ kind: 'untouched' });
  });

  it('leaves a file alone that cannot be parsed', () => {
    expect(migrated('a.ts', "import Redlock from 'redlock';\n\nlet x = ;\n")).toEqual({
      kind: 'unparsable',
      problem: 'line 3: Expression expected.',
    });
    expect(migrated('a.js', "import Redlock from 'redlock';\nlet x: Redlock;\n")).toMatchObject({
      kind: 'unparsable',
    });
  });

  it('says how to register the module once, and not where it is registered', () => {
    const { input, expected } = fixtures.find(({ name }) => name === 'redis-semaphore/orders.ts')!;
    expect(expected).toContain("keyPrefix: 'mutex:'");
    const project = new Project([input]);
    const texts = ['a.ts', 'b.ts'].map((name) => {
      const result = migrated(name, input, project);
      return result.kind === 'changed' ? result.text : '';
    });
    expect(texts.map((text) => text.includes("keyPrefix: 'mutex:'"))).toEqual([true, false]);
    const registered =
      "import { LockModule } from 'nestjs-holdfast'; LockModule.forRootAsync({ useClass: Options })";
    const result = migrated('a.ts', input, new Project([input, registered]));
    expect(result).toMatchObject({ kind: 'changed', text: texts[1] });
  });

  it('keeps a parameter where code names the parameters of the class', () => {
    const { name, input } = fixtures.find((it) => it.name.endsWith('lock/decorated.ts'))!;
    const spec = 'new OrdersService(lockService, refused);';
    const result = migrated(name, input, new Project([input, spec]));
    expect(result.kind === 'changed' ? result.text : '').toContain(
      'private readonly lockService: RedisLockService,\n    readonly refused',
    );
  });
});
