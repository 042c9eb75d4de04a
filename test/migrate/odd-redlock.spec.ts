import { describe, expect, it } from '@jest/globals';
import { codeAfter, textAfter } from './migrated.js';

const after = (text: string): string => textAfter('a.ts', text);

describe('a class with a Redlock', () => {
  const USING = "using(['a'], 1000, { retryCount: 0 }, async () => {})";
  const INJECTED = 'constructor(private readonly redlock: Redlock) {}';
  const PAY = `async pay() {\n    await this.redlock.${USING};\n  }`;
  const ACQUIRED = "const lock = await this.redlock.acquire(['a'], 1000, { retryCount: 0 });";
  const classWith = (...members: readonly string[]): string =>
    `@Injectable()\nclass Orders {\n  ${members.join('\n\n  ')}\n}\n`;
  const withImport = (text: string): string => `import Redlock from 'redlock';\n\n${text}`;
  const pay = (...statements: readonly string[]): string =>
    classWith(INJECTED, `async pay(other: Orders) {\n    ${statements.join('\n    ')}\n  }`);

  it('gets LockService in its place', () => {
    expect(after(withImport(classWith(INJECTED, PAY)))).toContain(
      classWith(
        'constructor(private readonly locks: LockService) {}',
        "async pay() {\n    await this.locks.run('a', { ttl: 1000, wait: 0 }, async () => {});\n  }",
      ),
    );
  });

  it('uses the LockService that it has', () => {
    const both =
      'constructor(private readonly held: LockService, private readonly redlock: Redlock) {}';
    const text = after(
      withImport(`import { LockService } from 'nestjs-holdfast';\n\n${classWith(both, PAY)}`),
    );
    expect(text).toContain('  constructor(private readonly held: LockService) {}\n');
    expect(text).toContain("await this.held.run('a', { ttl: 1000, wait: 0 }, async () => {});");
  });

  it.each([
    ['that others can use', ['constructor(readonly redlock: Redlock) {}', PAY]],
    ['that may be missing', ['constructor(private readonly redlock?: Redlock) {}', PAY]],
    ['that may be null', ['constructor(private readonly redlock: Redlock | null) {}', PAY]],
    ['of all its objects', ['private static readonly redlock = new Redlock([client]);', PAY]],
    ['that is made elsewhere', ['private redlock: Redlock;', PAY]],
    [
      'that is made by another class',
      ['private readonly redlock: Redlock = new Other([client]);', PAY],
    ],
    [
      'that is made twice',
      [
        'private redlock = new Redlock([client]);',
        'constructor() {\n    this.redlock = new Redlock([other]);\n  }',
        PAY,
      ],
    ],
    [
      'that may be there already',
      [
        'private redlock: Redlock;',
        'constructor() {\n    this.redlock ??= new Redlock([client]);\n  }',
        PAY,
      ],
    ],
  ])('keeps one %s', (_, members) => {
    const class_ = classWith(...members);
    expect(codeAfter('a.ts', withImport(class_))).toContain(`\n\n${class_}`);
  });

  it.each([
    ['of another object', [`await other.redlock.${USING};`]],
    ['of a Redlock that may be missing', [`await this.redlock?.${USING};`]],
    ['by another name', ['const { redlock: mine } = this;', `await mine.${USING};`]],
    [
      'of another method',
      ["await this.redlock.attempt(['a'], 1000, { retryCount: 0 }, async () => {});"],
    ],
    [
      'that something else makes',
      ['await repeat(this.redlock.using, 1000, { retryCount: 0 }, async () => {});'],
    ],
    [
      'whose work reads the signal otherwise',
      ["await this.redlock.using(['a'], 1000, { retryCount: 0 }, async ({ aborted }) => aborted);"],
    ],
    ['with a delay below zero', [`await this.redlock.${USING.replace('0', '3, retryDelay: -1')};`]],
  ])('keeps a call %s', (_, statements) => {
    const class_ = pay(...statements);
    expect(codeAfter('a.ts', withImport(class_))).toContain(`\n\n${class_}`);
  });

  it.each([
    ['may not be there', ['await lock?.release();']],
    ['is released under a condition', ['if (paid) await lock.release();']],
    ['whose release has a result', ['return await lock.release();']],
    [
      'is extended while the work goes on',
      ['lock.extend(500).catch(log);', 'await lock.release();'],
    ],
  ])('keeps a lock that %s', (_, statements) => {
    const class_ = pay(ACQUIRED, ...statements);
    expect(codeAfter('a.ts', withImport(class_))).toContain(`\n\n${class_}`);
  });

  it('gets LockService where a text begins like the name of an error', () => {
    const code = `${withImport(classWith(INJECTED, PAY))}\nlog('LockErrors');\n`;
    expect(after(code)).toContain('private readonly locks: LockService');
  });
});

describe('the calls of redlock 4', () => {
  const file = (...lines: readonly string[]): string =>
    ["import Redlock from '@nestjs-holdfast/redlock';", ...lines, ''].join('\n');

  it.each(['Redlock', 'Redlock | undefined', 'Redlock | null | undefined'])(
    'become those of redlock 5 where the type is %s',
    (type) => {
      const text = after(file(`let redlock: ${type};`, "redlock?.lock('a', 1000);"));
      expect(text).toBe(file(`let redlock: ${type};`, "redlock?.acquire(['a'], 1000);"));
    },
  );

  it.each(['Redlock | Mutexes', 'Redlock | Nonnull', 'undefined | null', 'Redlock[]'])(
    'stay where the type is %s',
    (type) => {
      const text = file(`let redlock: ${type};`, "redlock?.lock('a', 1000);");
      expect(after(text)).toBe(text);
    },
  );

  it.each([
    ['of another library', ["const lock = await others.lock('a');", 'await lock.unlock();']],
    ['of a Redlock that is not seen', ["const lock = await lockIt('a');", 'await lock.unlock();']],
    ['that comes later', ['let lock;', 'lock.unlock();']],
  ])('stay for a lock %s, and are marked', (_, lines) => {
    const text = file(...lines);
    expect(after(text)).toContain('if this is a lock of redlock, write release().');
    expect(codeAfter('a.ts', text)).toBe(text);
  });

  it.each([
    [
      'redlock.unlock(lock, done);',
      'redlock.release(lock, done);',
      ['there are no callbacks: await the call.'],
    ],
    ['redlock.unlock(lock);', 'redlock.release(lock);', []],
    [
      "redlock.on('clientError', log);",
      "redlock.on('clientError', log);",
      ['the event "clientError" of redlock 4 is "error" now.'],
    ],
    ["redlock.on('error', log);", "redlock.on('error', log);", []],
  ])('%s becomes %s, with %j', (before, changed, hints) => {
    const text = after(file('let redlock: Redlock;', before));
    const marks = Array.from(text.matchAll(/\): (.*) https:/g), ([, hint]) => hint);
    expect(marks).toEqual(hints);
    expect(text.split('\n')).toContain(changed);
  });
});

describe('what @nestjs-holdfast/redlock does not have', () => {
  it.each([
    ["export * from 'redlock';", '*'],
    ["export * as redlock from 'redlock';", '*'],
    ["export { CompatibleRedisClient } from 'redlock';", 'CompatibleRedisClient'],
    ["import { Callback, NodeifyCallback } from 'redlock';", 'Callback, NodeifyCallback'],
    ["import Redlock, * as all from 'redlock';\nnew Redlock([]);\nlet lock: all.Lock;", 'all.Lock'],
  ])('%s stays, and is marked', (code, names) => {
    const text = `${code}\n`;
    expect(after(text)).toContain(`: @nestjs-holdfast/redlock has no ${names}. https:`);
    expect(codeAfter('a.ts', text)).toBe(text);
  });
});
