import { describe, expect, it } from '@jest/globals';
import { codeAfter, textAfter } from './migrated.js';

const after = (text: string): string => textAfter('a.ts', text);

const IMPORT = "import { RedisLockService } from 'nestjs-simple-redis-lock';\n\n";
const INJECTED = 'constructor(private readonly lockService: RedisLockService) {}';
const LOCK = "await this.lockService.lock('a');";
const UNLOCK = "await this.lockService.unlock('a');";

const classWith = (...members: readonly string[]): string =>
  `@Injectable()\nclass Orders {\n  ${members.join('\n\n  ')}\n}\n`;
const method = (head: string, ...lines: readonly string[]): string =>
  [`async pay${head} {`, ...lines.map((line) => `  ${line}`), '}'].join('\n  ');
const pay = (...lines: readonly string[]): string => method('()', ...lines);
const SECTION = [LOCK, 'try {', '  work();', '} finally {', `  ${UNLOCK}`, '}'];

describe('lock() and unlock() of a service', () => {
  it('become acquire() and release(), whatever else there is in the finally', () => {
    const others = ['  const endMs = Date.now();', '  if (late) log(endMs);'];
    const lines = (lock: string, unlock: string): readonly string[] => [
      ...[lock, 'try {', '  work();', '} finally {'],
      ...[...others, `  ${unlock}`, '}'],
    ];
    expect(after(IMPORT + classWith(INJECTED, pay(...lines(LOCK, UNLOCK))))).toContain(
      classWith(
        INJECTED.replace('RedisLockService', 'LockService'),
        pay(
          ...lines(
            "const lock = await this.lockService.acquire('a', { wait: '1m' });",
            'await lock.release();',
          ),
        ),
      ),
    );
  });

  it.each([
    ['lock() is the last statement', pay(LOCK)],
    ['no try comes next', pay(LOCK, 'work();', UNLOCK)],
    [
      'lock() is in the finally itself',
      pay('try {', '  work();', '} finally {', `  ${LOCK}`, `  ${UNLOCK}`, '}'),
    ],
    [
      'a refusal is caught',
      pay('try {', `  ${LOCK}`, '  work();', '} catch {', '} finally {', `  ${UNLOCK}`, '}'),
    ],
    [
      'something is done in the try before',
      pay('try {', '  start();', `  ${LOCK}`, '  work();', '} finally {', `  ${UNLOCK}`, '}'),
    ],
    ['the finally calls another method', pay(...SECTION).replace('unlock', 'touch')],
    ['the finally names no key', pay(...SECTION).replace("unlock('a')", 'unlock()')],
    ['the finally names another key', pay(...SECTION).replace("unlock('a')", "unlock('b')")],
    ['the finally returns', pay(...SECTION).replace('await this.lockService.unlock', 'return $&')],
    ['it is tried once', pay(...SECTION).replace("lock('a')", "lockOnce('a', 1000)")],
    [
      'the service may be missing',
      pay(...SECTION).replace('this.lockService.lock', 'this.lockService?.lock'),
    ],
    [
      'the service is reached by another name',
      pay('const self = this;', ...SECTION).replaceAll('this.', 'self.'),
    ],
    ['a parameter has the name of the lock', method('(lock: Lock)', ...SECTION)],
    [
      'a method does it twice',
      pay('if (first) {', ...SECTION.map((line) => `  ${line}`), '}', ...SECTION),
    ],
  ])('stay where %s', (_, code) => {
    const class_ = classWith(INJECTED, code);
    const text = IMPORT + class_;
    expect(after(text)).toContain('LockService replaces it: acquire(), or run().');
    expect(codeAfter('a.ts', text)).toBe(text);
  });

  it.each(['protected readonly', 'protected', 'readonly'])(
    'stay where the service is a parameter that is "%s"',
    (modifiers) => {
      const class_ = classWith(INJECTED.replace('private readonly', modifiers), pay(...SECTION));
      expect(codeAfter('a.ts', IMPORT + class_)).toBe(IMPORT + class_);
    },
  );

  it('stay where a decorator searches the service in the object, in whichever order both are imported', () => {
    const import_ = "import { RedisLockService, RedisLock } from 'nestjs-simple-redis-lock';\n\n";
    const count = '@RedisLock((target) => target.name)\n  async count() {}';
    const text = import_ + classWith(INJECTED, count, pay(...SECTION));
    expect(codeAfter('a.ts', text)).toBe(text);
  });
});

describe('a service that a class does not use', () => {
  it.each([
    [
      'the only parameter',
      `constructor(\n    private readonly lockService: RedisLockService,\n  ) {}`,
      'constructor(\n    \n  ) {}',
    ],
    [
      'the only parameter, with its comma below',
      'constructor(\n    private readonly lockService: RedisLockService\n  ,) {}',
      'constructor(\n    ) {}',
    ],
    [
      'the last parameter',
      'constructor(readonly name: string, private readonly lockService: RedisLockService) {}',
      'constructor(readonly name: string) {}',
    ],
    [
      'the first parameter',
      'constructor(private readonly lockService: RedisLockService, readonly name: string) {}',
      'constructor(readonly name: string) {}',
    ],
    [
      'a parameter with a comment, before one with a comment',
      `constructor(
    private readonly lockService: RedisLockService, // the old locks
    /** In the shop. */
    readonly name: string,
  ) {}`,
      `constructor(
    /** In the shop. */
    readonly name: string,
  ) {}`,
    ],
    [
      'the last parameter, with a comment and a comma, after one with a comment',
      `constructor(
    readonly name: string, // in the shop
    private readonly lockService: RedisLockService, // the old locks
  ) {}`,
      `constructor(
    readonly name: string, // in the shop
  ) {}`,
    ],
    [
      'the last parameter, with a comment and no comma, after one with a comment',
      `constructor(
    readonly name: string, // in the shop
    private readonly lockService: RedisLockService // the old locks
  ) {}`,
      `constructor(
    readonly name: string // in the shop
  ) {}`,
    ],
  ])('is no longer injected, as %s', (_, constructor, changed) => {
    expect(codeAfter('a.ts', IMPORT + classWith(constructor))).toBe(`\n${classWith(changed)}`);
  });

  it('stays where it is not known what makes the class: it has no name', () => {
    const text = IMPORT + classWith(INJECTED).replace('class Orders', 'export default class');
    expect(codeAfter('a.ts', text)).toBe(text);
  });
});

describe('the service of a class', () => {
  it.each([
    "@Inject('LOCKS') private readonly lockService: RedisLockService",
    'private readonly lockService: RedisLockService = own',
    'private readonly { lockService }: RedisLockService',
  ])('that its type alone does not inject stays: %s', (parameter) => {
    for (const members of [[], [pay(...SECTION)]]) {
      const text = IMPORT + classWith(`constructor(${parameter}) {}`, ...members);
      expect(codeAfter('a.ts', text)).toBe(text);
    }
  });

  it('may have the name of what is called of it', () => {
    const constructor = 'constructor(private readonly lock: RedisLockService) {}';
    const section = SECTION.map((line) => line.replace('lockService', 'lock'));
    expect(after(IMPORT + classWith(constructor, pay(...section)))).toContain(
      "const lock = await this.lock.acquire('a', { wait: '1m' });",
    );
  });

  it('that is no property of it stays', () => {
    const text = IMPORT + classWith('constructor(lockService: RedisLockService) {}');
    expect(codeAfter('a.ts', text)).toBe(text);
  });

  it.each([
    'const { lockService } = this; await lockService.lock(id);',
    "await this['lockService'].lock(id);",
    'await other.lockService.lock(id);',
  ])('stays where it is used like this: %s', (line) => {
    const use = method('(other: Orders, id: string)', line);
    const alone = IMPORT + classWith(INJECTED, use);
    expect(codeAfter('a.ts', alone)).toBe(alone);
    const beside = IMPORT + classWith(INJECTED, use, pay(...SECTION));
    expect(codeAfter('a.ts', beside)).toBe(beside);
  });

  it('that it does not use goes with its comma and comment', () => {
    const comma = INJECTED.replace(')', ' /* x */,)');
    expect(after(IMPORT + classWith(comma))).toContain(classWith('constructor() {}'));
  });
});
