import { describe, expect, it } from '@jest/globals';
import { Project } from '../../packages/migrate/lib/project.js';
import { brokenLinksIn } from '../claims/docs/links.js';
import { fixtures, update } from './fixtures.js';
import { migrated, textAfter } from './migrated.js';

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
    const text = "// redlock\nimport { LockService } from 'nestjs-holdfast';\nlet x = ;";
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
    const texts = ['a.ts', 'b.ts'].map((name) => textAfter(name, input, project));
    expect(texts.map((text) => text.includes("keyPrefix: 'mutex:'"))).toEqual([true, false]);
    const registered =
      "import { LockModule } from 'nestjs-holdfast'; LockModule.forRootAsync({ useClass: Options })";
    const result = migrated('a.ts', input, new Project([input, registered]));
    expect(result).toMatchObject({ kind: 'changed', text: texts[1] });
  });

  it.each([
    ['LockModule\n  .forRoot({ redis })', false],
    ['LockModule.\n  forRootAsync({ useClass: Options })', false],
    ['RedisLockModule.forRoot ({ redis })', false],
    ["const redis = 'redis://a'; LockModule.forRoot({ redis })", false],
    ['// LockModule.forRoot({ redis })', true],
    ['start();\n  // LockModule.forRoot({ redis })', true],
    ['ClockModule.forRoot({ redis })', true],
  ])('looks whether the module is registered: %s', (code, isMarked) => {
    const { input } = fixtures.find(({ name }) => name === 'redis-semaphore/orders.ts')!;
    const other = `import { LockModule } from 'nestjs-holdfast';\n${code};\n`;
    const text = textAfter('a.ts', input, new Project([input, other]));
    expect(text.includes('register LockModule')).toBe(isMarked);
  });

  describe('of redlock', () => {
    const { name, input, expected } = fixtures.find((it) => it.name === 'redlock/service.ts')!;
    const afterIn = (files: readonly [string, ...string[]]): string =>
      textAfter(name, files[0], new Project(files));
    const [consumer, provider] = [
      input.slice(0, input.indexOf('@Module')),
      "import Redlock from 'redlock';\nexport const make = () => new Redlock([], { retryCount: 20, retryDelay: 100 });",
    ];

    it('takes the wait from the file that makes it', () => {
      const start = expected.indexOf('@Injectable');
      const classes = expected.slice(start, expected.indexOf('@Module'));
      const result = afterIn([consumer, provider]);
      expect(result.slice(result.indexOf('@Injectable'))).toBe(classes);
      expect(result).not.toContain('@nestjs-holdfast/redlock');
    });

    it.each([
      ['no file makes it', ''],
      ['two are made with different settings', provider + provider.replace('20', '21')],
      ['its settings are a variable', provider.replace(/\{.*\}/, 'settings')],
      ['a setting is of another kind', provider.replace('{ ', '{ lockScript: own, ')],
      ['its drift factor is not the default', provider.replace('{ ', '{ driftFactor: 0.1, ')],
      ['its scripts are replaced', provider.replace(' })', ' }, {})')],
      ['a delay is below zero', provider.replace('100', '-1')],
      [
        'another one is made with other settings, for a variable',
        `${provider}\nlet other;\nother = new Redlock([], { retryCount: 1 });`,
      ],
      ['a file that may make it cannot be parsed', `${provider}\nlet x = ;`],
      ['a class extends it', `${provider} class Other extends Redlock {}`],
    ])('keeps the calls where %s', (_, text) => {
      const result = afterIn([consumer, text]);
      expect(result).toContain("from '@nestjs-holdfast/redlock';");
      expect(result).toContain('await this.redlock.using(\n      ids,');
      expect(result).toContain('private readonly redlock: Redlock');
    });

    it.each([
      ['has its own in a field', 'class A { redlock = new Redlock([], { retryCount: 1 }); }'],
      [
        'makes its own',
        'class A { constructor() { this.redlock = new Redlock([], { retryCount: 1 }); } }',
      ],
      ['extends another one', 'class A extends B {}'],
    ])('takes the wait from there, too, where another class %s', (_, class_) => {
      expect(afterIn([consumer, `${provider}\n${class_}`])).toBe(afterIn([consumer, provider]));
    });

    it('needs no file that makes it where each call has settings', () => {
      const own = consumer
        .replaceAll(/(?<=TTL|5_000)(?=, async)/g, ', { retryCount: 0 }')
        .replace("['count'], TTL", "['count'], TTL, { retryCount: 0 }")
        .replace('{ retryDelay: 50 }', '{ retryCount: 1, retryDelay: 50 }');
      const result = afterIn([own]);
      expect(result).toContain('this.locks.run(`order:${orderId}`, { ttl: 5_000, wait: 0 }');
    });

    it('says that keys have no prefix, also where a module is registered with one', () => {
      const registered =
        "import { LockModule } from 'nestjs-holdfast'; LockModule.forRoot({ redis })";
      expect(afterIn([input, registered])).toBe(expected);
      const shared = registered.replace('redis', "redis, keyPrefix: ''");
      const hint = /^\/\/ TODO\(nestjs-holdfast\): register .*\n/m;
      expect(afterIn([input, shared])).toBe(expected.replace(hint, ''));
    });

    it.each(['service', 'stays'])('continues after --drop-in: %s', (file) => {
      const fixture = fixtures.find((it) => it.name === `redlock/${file}.ts`)!;
      const project = new Project([fixture.input], 'drop-in');
      const text = textAfter(fixture.name, fixture.input, project);
      expect(text).toContain("from '@nestjs-holdfast/redlock';");
      expect(text).not.toContain('LockService }');
      expect(textAfter(fixture.name, text)).toBe(fixture.expected);
    });
  });

  it('keeps a parameter where code names the parameters of the class', () => {
    const { name, input } = fixtures.find((it) => it.name.endsWith('lock/decorated.ts'))!;
    const spec = 'new OrdersService(lockService, refused);';
    const text = textAfter(name, input, new Project([input, spec]));
    expect(text).not.toBe(input);
    expect(text).toContain('private readonly lockService: RedisLockService,\n    readonly refused');
  });
});
