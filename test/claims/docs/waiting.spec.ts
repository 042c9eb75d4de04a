import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { CronLock, defineLock, LockService, RunOnce, WithLock } from 'nestjs-holdfast';
import { features, LockFeature } from '../../../lib/nest/methods/lock-feature.js';
import { storeOption } from '../../../lib/options/location.js';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { settled, VirtualRuntime } from '../../support/virtual-runtime.js';

/** Who may say how long a call waits, by the words of the page. */
const BY = ['its own `wait`', '`defineLock`', '`forFeature`', '`forRoot`'] as const;
type By = (typeof BY)[number];

const SAID = { wait: '3s' } as const;
const project = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(`${project}docs/waiting.md`, 'utf8');
const TABLE = /<!-- waits -->\n\n((?:\|.*\n)+)/;
const [, table = ''] = TABLE.exec(page) ?? [];
const rows = table
  .trimEnd()
  .split('\n')
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, calls = '', unset = '', by = '']) => ({ calls, unset, by }));

const noWork = (): void => undefined;
const own = (by: By | undefined) => (by === 'its own `wait`' ? SAID : {});
const definition = (by: By | undefined) =>
  defineLock('key', { ...(by === '`defineLock`' ? SAID : {}) });

/** Calls a method that a decorator was put on. */
function called(
  locks: LockService,
  by: By | undefined,
  decorator: (...args: never[]) => void,
): unknown {
  class Service {
    work(): Promise<void> {
      return Promise.resolve();
    }
  }
  const { prototype } = Service;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'work');
  const decorated = (decorator as MethodDecorator)(prototype, 'work', descriptor ?? {});
  Object.defineProperty(prototype, 'work', decorated ?? descriptor ?? {});
  const service = new Service();
  if (by === '`forFeature`') features.set(service, new LockFeature(SAID));
  locks.bind(service);
  return service.work();
}

/** Each call of the table. It asks for a key that another caller holds. */
const CALLS: Readonly<Record<string, (locks: LockService, by?: By) => unknown>> = {
  '@WithLock': (locks, by) => called(locks, by, WithLock('key', own(by))),
  '@CronLock': (locks, by) => called(locks, by, CronLock('key', { atLeast: 0 })),
  '@RunOnce': (locks, by) => called(locks, by, RunOnce('key', own(by))),
  acquire: (locks, by) => locks.acquire('key', own(by)),
  run: (locks, by) => locks.run('key', own(by), noWork),
  runOnce: (locks, by) => locks.runOnce('key', own(by), noWork),
  'limiter().acquire': (locks, by) => locks.limiter('key', { limit: 1 }).acquire(own(by)),
  'limiter().run': (locks, by) => locks.limiter('key', { limit: 1 }).run(own(by), noWork),
  'for().acquire': (locks, by) => locks.for(definition(by)).acquire(own(by)),
  'for().run': (locks, by) => locks.for(definition(by)).run(own(by), noWork),
  '@orderLock.WithLock': (locks, by) => called(locks, by, definition(by).WithLock(own(by))),
  tryAcquire: (locks) => locks.tryAcquire('key'),
  tryRun: (locks) => locks.tryRun('key', noWork),
};

/** For how long a call waits, in s. */
async function waited(name: string, by?: By): Promise<number> {
  const clock = new VirtualRuntime();
  const store = storeOption(new MemoryLockStore(clock));
  const serviceOf = (said: object): LockService =>
    new LockService({ store, ...said }, { runtime: clock });
  await serviceOf({}).acquire('key', { limit: name.startsWith('limiter') ? 1 : undefined });
  const begun = clock.now().monotonicMs;
  let ended: number | undefined;
  const call = CALLS[name];
  if (call === undefined) throw new Error(`no call is known as ${name}`);
  const end = (): void => {
    ended = clock.now().monotonicMs;
  };
  Promise.resolve(call(serviceOf(by === '`forRoot`' ? SAID : {}), by)).then(end, end);
  await settled();
  while (ended === undefined && clock.now().monotonicMs - begun < 60_000) await clock.advance(100);
  return ended === undefined ? Infinity : Math.round((ended - begun) / 1_000);
}

describe('how long calls wait', () => {
  it('is said on each page in the same words', () => {
    const said =
      /without `wait`, a method with `@WithLock` does not wait(?:, and calls by hand wait 10 s)?(?=[.:]| +\|)/gi;
    const pages = [
      'README.md',
      ...readdirSync(`${project}docs`, { recursive: true, encoding: 'utf8' }).map(
        (name) => `docs/${name}`,
      ),
    ];
    const other = pages
      .filter((name) => name.endsWith('.md'))
      .flatMap((name) => {
        const text = readFileSync(project + name, 'utf8')
          .replaceAll(said, '')
          .replace(TABLE, '');
        return Array.from(text.matchAll(/^.*without `wait`.*$/gim), ([line]) => `${name}: ${line}`);
      });
    expect(other).toEqual([]);
  });

  it('is said of each call', () => {
    const named = rows.flatMap(({ calls }) => callsIn(calls));
    expect(named.toSorted()).toEqual(Object.keys(CALLS).toSorted());
  });

  it.each(rows)('is as the page says: $calls', async ({ calls, unset, by }) => {
    for (const name of callsIn(calls)) {
      const found = { unset: await waited(name), by: [] as By[] };
      for (const each of BY) if ((await waited(name, each)) === 3) found.by.push(each);
      expect({ name, ...found }).toEqual({
        ...{ name, unset: unset === '0' ? 0 : parseInt(unset, 10) },
        by: BY.filter((each) => by.includes(each)),
      });
    }
  });
});

describe('the picture of a wait', () => {
  const [, alt = '', name = ''] = /!\[([^\]]*)\]\(([^)]+)\)/.exec(page) ?? [];
  const picture = readFileSync(`${project}docs/${name}`, 'utf8');

  it('has a text for those who do not see it', () => {
    expect(alt.split(' ').length).toBeGreaterThan(20);
    expect(picture).toMatch(/<svg [^>]*role="img" aria-labelledby="title desc"/);
    expect(picture).toMatch(/<title id="title">.+<\/title>\n<desc id="desc">.+<\/desc>/);
  });

  it('has colours for dark pages, runs no script and loads nothing', () => {
    expect(picture).toContain('@media (prefers-color-scheme: dark)');
    expect(picture).not.toMatch(/<script|<foreignObject|\son\w+=|href=|url\(|@import/i);
  });
});

const callsIn = (cell: string): string[] =>
  Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = '']) => name.replace(/\(…\)/, '()'));
