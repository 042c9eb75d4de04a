import { describe, expect, it } from '@jest/globals';
import { codeAfter, textAfter } from './migrated.js';

const after = (text: string): string => textAfter('a.ts', text);

const MUTEX = `
    const mutex = new Mutex(this.redis, 'a', { acquireAttemptsLimit: 1 });
    await mutex.acquire();
    await mutex.release();`;
const ACQUIRED = `
    const mutex = await this.locks.acquire('a', { wait: 0 });
    await mutex.release();`;

const withImport = (text: string): string =>
  `import { Injectable } from '@nestjs/common';\nimport { Mutex } from 'redis-semaphore';\n\n${text}\n`;

describe('a mutex of a provider', () => {
  it.each([
    [
      'a constructor without parameters',
      'readonly redis = client;\n  constructor() {\n    start();\n  }',
      'readonly redis = client;\n  constructor(private readonly locks: LockService) {\n    start();\n  }',
    ],
    [
      'parameters below each other',
      'constructor(\n    readonly redis: Redis,\n  ) {}',
      'constructor(\n    readonly redis: Redis,\n    private readonly locks: LockService,\n  ) {}',
    ],
    [
      'no constructor, but properties',
      'readonly redis = client;',
      'readonly redis = client;\n\n  constructor(private readonly locks: LockService) {}',
    ],
    [
      'other names that are taken',
      'readonly redis = client;\n  locks = [];\n\n  constructor() {}',
      'readonly redis = client;\n  locks = [];\n\n  constructor(private readonly lockService: LockService) {}',
    ],
  ])('becomes a lock where the class has %s', (_what, members, changed) => {
    const class_ = `@Injectable()\nclass Orders {\n  ${members}\n\n  async pay() {${MUTEX}\n  }\n}`;
    const text = after(withImport(class_));
    const name = /\w+(?=: LockService)/.exec(changed)?.[0];
    const acquired = ACQUIRED.replace('locks', String(name));
    const expected = class_.replace(members, changed).replace(MUTEX, acquired);
    expect(text).toContain(`import { LockService } from 'nestjs-holdfast';\n\n${expected}\n`);
    expect(text).not.toContain('redis-semaphore');
  });

  it('becomes a lock without options where it had none', () => {
    const text = after(
      withImport(
        `@Injectable()\nclass Orders {\n  async pay() {${MUTEX}\n  }\n}`.replace(
          ', { acquireAttemptsLimit: 1 }',
          '',
        ),
      ),
    );
    expect(text).toContain("const mutex = await this.locks.acquire('a');");
  });

  it('becomes a lock in a class that begins with a method', () => {
    const text = after(
      withImport(
        `@Injectable()\nclass Orders {\n  pay() {\n    return async () => {${MUTEX}\n    };\n  }\n\n  ship() {}\n}`,
      ),
    );
    expect(text).toContain(
      `class Orders {\n  constructor(private readonly locks: LockService) {}\n\n  pay() {\n    return async () => {${ACQUIRED}\n    };`,
    );
  });

  it.each(['a.mts', 'a.cts', 'a.tsx'])('becomes a lock in %s, too', (name) => {
    const class_ = `@Injectable()\nclass Orders {\n  async pay() {${MUTEX}\n  }\n}`;
    expect(textAfter(name, withImport(class_))).toContain(ACQUIRED);
  });

  describe('of a class that has LockService', () => {
    const orders = `@Injectable()\nclass Orders {\n  constructor(private readonly locks: LockService) {}\n\n  async pay() {${MUTEX}\n  }\n}\n`;

    it('becomes a lock of it', () => {
      const ours = "import { LockService } from 'nestjs-holdfast';\n";
      const theirs = "import { Mutex } from 'redis-semaphore';";
      // What follows in the same line stays.
      expect(codeAfter('a.ts', `${ours}${theirs}start();\n${orders}`)).toBe(
        `${ours}start();\n${orders.replace(MUTEX, ACQUIRED)}`,
      );
    });

    it('stays where the name means something else', () => {
      const text = withImport(`class LockService {}\n\n${orders}`);
      expect(codeAfter('a.ts', text)).toBe(text);
    });

    it.each(["import * as holdfast from 'nestjs-holdfast';", "import 'nestjs-holdfast';"])(
      'gets an import beside %s',
      (other) => {
        const code = orders.replace('private readonly locks: LockService', '');
        const text = codeAfter('a.ts', `${other}\n${withImport(code)}`);
        expect(text).toContain(`${other}\n`);
        expect(text).toContain("import { LockService } from 'nestjs-holdfast';\n");
        expect(text).toContain(ACQUIRED);
      },
    );
  });

  it.each([
    ['{ acquireAttemptsLimit: 5 }', '{ wait: 50 /* 5 × 10 ms */ }'],
    ['{ acquireAttemptsLimit: 2_000 }', '{ wait: 10000 }'],
    ['{ acquireAttemptsLimit: 2_000, acquireTimeout: 9_000 }', '{ wait: 9_000 }'],
    ['{ acquireAttemptsLimit: +5 }', '{ wait: Math.min(10000, (+5) * 10) }'],
  ])('with %s becomes a lock with %s', (settings, options) => {
    const mutex = MUTEX.replace('{ acquireAttemptsLimit: 1 }', settings);
    const text = after(
      withImport(`@Injectable()\nclass Orders {\n  async pay() {${mutex}\n  }\n}`),
    );
    expect(text).toContain(`await this.locks.acquire('a', ${options});`);
  });

  it.each(['{ ...settings }', '{ [name]: 1 }', '{ acquireTimeout() {} }', 'settings'])(
    'stays with %s',
    (settings) => {
      const mutex = MUTEX.replace('{ acquireAttemptsLimit: 1 }', settings);
      const text = withImport(`@Injectable()\nclass Orders {\n  async pay() {${mutex}\n  }\n}`);
      expect(codeAfter('a.ts', text)).toBe(text);
    },
  );

  it('leaves what was required where it was', () => {
    const text = after(
      withImport(`@Injectable()\nclass Orders {\n  async pay() {${MUTEX}\n  }\n}`).replace(
        "import { Mutex } from 'redis-semaphore';",
        "const { Mutex } = require('redis-semaphore');",
      ),
    );
    expect(text).toContain(ACQUIRED);
    expect(text).toContain("const { Mutex } = require('redis-semaphore');");
    expect(text).not.toContain('name what replaces it.');
  });
});

describe('a mutex', () => {
  it.each([
    ['in a static method', `@Injectable()\nclass Orders {\n  static async pay() {${MUTEX}\n  }\n}`],
    ['in a class that Nest does not make', `class Orders {\n  async pay() {${MUTEX}\n  }\n}`],
    ['in an object', `const orders = {\n  async pay() {${MUTEX}\n  },\n};`],
    ['in a class without a name', `const Orders = class {\n  async pay() {${MUTEX}\n  }\n};`],
    [
      'in a function with another "this"',
      `@Injectable()\nclass Orders {\n  pay() {\n    return async function () {${MUTEX}\n    };\n  }\n}`,
    ],
    [
      'in a class that inherits a constructor',
      `@Injectable()\nclass Orders extends Base {\n  async pay() {${MUTEX}\n  }\n}`,
    ],
  ])('%s is marked, and stays', (_what, class_) => {
    const text = after(withImport(class_));
    const mark = /^ *\/\/ TODO\(nestjs-holdfast\): inject LockService, .*\n/m;
    expect(text).toMatch(mark);
    expect(text.replace(mark, '')).toBe(withImport(class_));
  });
});

describe('a mutex whose Redis may not be that of the others in its file', () => {
  const method = (client: string, n: number): string =>
    `  async pay${n}(redis: Redis) {\n    const shard = this.shardOf(redis);${MUTEX.replace('this.redis', client)}\n  }\n`;
  const oneClass = (...clients: readonly string[]): string =>
    withImport(`@Injectable()\nclass Orders {\n${clients.map(method).join('\n')}}`);
  const classEach = (...clients: readonly string[]): string =>
    withImport(
      clients
        .map((client, n) => `@Injectable()\nclass Orders${n} {\n${method(client, n)}}`)
        .join('\n\n'),
    );
  const MARK =
    /^ *\/\/ TODO\(nestjs-holdfast\): .* The mutexes of this file may use different Redis servers\. .*\n/gm;

  it.each([
    ['this.cache', 'this.orders'],
    ['this.cache', 'client'],
    ['this.shards[0]', 'this.shards[1]'],
    ['shard'],
    ['redis'],
    ['(redis as any)!'],
    ['redis', 'redis'],
    ['this.shardOf(redis)'],
  ])('is marked, and stays: %s', (...clients) => {
    for (const text of [oneClass(...clients), classEach(...clients)]) {
      const marked = after(text);
      expect(marked.match(MARK)).toHaveLength(clients.length);
      expect(marked.replaceAll(MARK, '')).toBe(text);
    }
  });

  it.each([
    ['this.cache', 'this.cache'],
    ['client', 'client'],
    ['this.redis!', '(this.redis)', 'this.redis as any', 'this.redis satisfies Redis'],
    ['(<any>this.redis)!'],
    ['this.service.client'],
    ['this.service.getClient()'],
    ['this.shards[0]'],
  ])('becomes a lock where all have one client: %s', (...clients) => {
    for (const text of [oneClass(...clients), classEach(...clients)]) {
      const changed = after(text);
      expect(changed.split(ACQUIRED)).toHaveLength(clients.length + 1);
      expect(changed).not.toMatch(MARK);
    }
  });
});

describe('the import of a Redlock', () => {
  it.each([
    ["import redlock = require('redlock');", "import { Redlock as redlock } from '<>';"],
    ["import redlock from 'redlock';", "import redlock from '<>';"],
    ["const redlock = require('redlock');", "const { Redlock: redlock } = require('<>');"],
    ["var Redlock = require('redlock')", "var { Redlock } = require('<>')"],
    [
      "let nothing;\nconst none = require();\nconst some = require(name);\nconst Redlock = require('redlock');",
      "let nothing;\nconst none = require();\nconst some = require(name);\nconst { Redlock } = require('<>');",
    ],
  ])('%s becomes that of @nestjs-holdfast/redlock', (given, changed) => {
    const text = after(`${given}\n\nnew redlock([client]);\n`);
    expect(text).toContain(`${changed.replace('<>', '@nestjs-holdfast/redlock')}\n`);
  });

  it('is marked beside another one in the same statement', () => {
    const given = "const ioredis = require('ioredis'), Redlock = require('redlock');\n";
    const text = after(`${given}\nnew Redlock([client]);\n`);
    expect(text).toMatch(/^\/\/ TODO\(nestjs-holdfast\): name @nestjs-holdfast\/redlock here/);
    expect(text).toContain(given);
  });

  it('stays where another import of the file has to stay', () => {
    const imports =
      "import Redlock from 'redlock';\nimport { Redlock as Fork } from '@sesamecare-oss/redlock';\n";
    const calls = 'Fork.LockError;\nnew Redlock([client]);\nnew Fork([client]);\n';
    const text = after(`${imports}\n${calls}`);
    const mark =
      /^\/\/ TODO\(nestjs-holdfast\): @nestjs-holdfast\/redlock has no Fork\.LockError\..*\n/m;
    expect(text).toMatch(mark);
    expect(text.replace(mark, '')).toBe(`${imports}\n${calls}`);
  });

  it('leaves a lock that is made without a Redlock to the reader', () => {
    const made = "const lock = new Lock(redlock, ['a'], value, [], expiration);\n";
    const text = after(`import { Lock } from 'redlock';\n\n${made}`);
    expect(text).toMatch(
      /\/\/ TODO\(nestjs-holdfast\): only acquire\(\) and extend\(\) make a Lock\./,
    );
    expect(text).toContain(made);
  });

  it('has calls rewritten of what is a Redlock in each declaration', () => {
    const text = textAfter(
      'a.js',
      [
        "const Redlock = require('redlock');",
        'var locks = new Redlock([client]);',
        'var locks = other();',
        "locks.lock('a', 1000);",
        'var single = new Redlock([client]);',
        "single.lock('a', 1000);\n",
      ].join('\n'),
    );
    expect(text).toContain("locks.lock('a', 1000);");
    expect(text).toContain("single.acquire(['a'], 1000);");
  });
});

describe('a Redlock of a provider', () => {
  const orders = (redlock: string, call: string): string =>
    `@Injectable()\nclass Orders {\n  constructor(${redlock}) {}\n\n  async pay() {\n    await ${call}\n  }\n}\n`;
  const REDLOCK = 'private readonly redlock: Redlock';

  it.each([
    ['the TTL is missing', "using(['a'], async (signal) => signal.throwIfAborted());"],
    ['arguments are a list', "using(['a'], ...settings, async () => {});"],
  ])('stays where %s', (_, call) => {
    const class_ = orders(REDLOCK, `this.redlock.${call}`);
    const text = after(`import Redlock from 'redlock';\n\nnew Redlock([]);\n\n${class_}`);
    expect(text.replaceAll(/^ *\/\/ TODO.*\n/gm, '')).toContain(`\n\n${class_}`);
  });

  it('takes its name out of an import of types', () => {
    const imports = "import type { Redlock, Settings } from 'redlock';\n";
    const call = "this.redlock.using(['a'], 1000, { retryCount: 0 }, async () => {});";
    const text = after(`${imports}\nlet settings: Settings;\n\n${orders(REDLOCK, call)}`);
    expect(text).toContain("import type { Settings } from '@nestjs-holdfast/redlock';\n");
    expect(text).toContain("import { LockService } from 'nestjs-holdfast';\n");
  });
});

describe('a @RedisLock', () => {
  const HINT = 'TODO(nestjs-holdfast): @WithLock ';

  it.each([
    ['that is no decorator', 'const Again = RedisLock;', 'replaces it.'],
    [
      'with one argument too many',
      "class Orders {\n  @RedisLock('a', 1, 2, 3, 4)\n  async pay() {}\n}",
      'takes a template',
    ],
    [
      'without an argument',
      'class Orders {\n  @RedisLock()\n  async pay() {}\n}',
      'takes a template',
    ],
    [
      'on a method that is not asynchronous',
      "class Orders {\n  @RedisLock('a')\n  pay() {}\n}",
      'needs a method that returns a Promise: make it async.',
    ],
    [
      'on an asynchronous generator',
      "class Orders {\n  @RedisLock('a')\n  async *pay() {}\n}",
      'needs a method that returns a Promise: make it async.',
    ],
    ...['PromiseSettledResult<void>', 'Map<string, Promise<void>>'].map((type) => [
      `on a method that returns a ${type}`,
      `class Orders {\n  @RedisLock('a')\n  pay(): ${type} {}\n}`,
      'needs a method that returns a Promise: make it async.',
    ]),
    [
      'on a property',
      "class Orders {\n  @RedisLock('a')\n  pay = async () => {};\n}",
      'replaces it.',
    ],
    [
      'that another decorator gets',
      "class Orders {\n  @Decorate('a', RedisLock)\n  async pay() {}\n}",
      'replaces it.',
    ],
    ...[
      ['a parameter that the method does not have', 'id', ''],
      ['a parameter without a type', 'id', 'id'],
      ['a parameter with a default', 'id', "id: string = 'a'"],
      ['a default of its own', "id = 'a'", 'id: string'],
      ['the rest of the parameters', '...id', '...id: string[]'],
      ['a rest of its own', '...id', 'id: string'],
    ].map(([what, own, parameters]) => [
      `whose key takes ${what}`,
      `class Orders {\n  @RedisLock((target, ${own}) => id)\n  async pay(${parameters}) {}\n}`,
      'takes a template',
    ]),
  ])('%s is marked, and stays', (_what, code, hint) => {
    const given = `import { RedisLock } from 'nestjs-simple-redis-lock';\n\n${code}\n`;
    const text = after(given);
    expect(text).toContain(HINT + hint);
    expect(text.replace(/^ *\/\/ TODO\(nestjs-holdfast\).*\n/m, '')).toBe(given);
  });

  it.each([
    ["@RedisLock('a')\n  pay(): Promise<void> {}", "'a', { wait: '1m' }"],
    [
      "@RedisLock('a', 1_000, 50)\n  async pay() {}",
      "'a', { ttl: 1_000, wait: 30000 /* 600 × 50 ms */ }",
    ],
    [
      "@RedisLock('a', 1_000, undefined, 3)\n  async pay() {}",
      "'a', { ttl: 1_000, wait: 300 /* 3 × 100 ms */ }",
    ],
    [
      '@RedisLock((target, id) => id, 1_000)\n  async pay(id?: string) {}',
      "(id?: string) => id, { ttl: 1_000, wait: '1m' }",
    ],
  ])('%s becomes @WithLock(%s)', (method, given) => {
    const text = after(
      `import { RedisLock } from 'nestjs-simple-redis-lock';\n\nclass Orders {\n  ${method}\n}\n`,
    );
    expect(text).toContain(
      `class Orders {\n  @WithLock(${given})\n  ${method.split('\n  ')[1]}\n}\n`,
    );
  });

  it('leaves what was required where it was', () => {
    const required = "const { RedisLock } = require('nestjs-simple-redis-lock');\n";
    const text = after(
      `import { Injectable } from '@nestjs/common';\n${required}\nclass Orders {\n  @RedisLock('a')\n  async pay() {}\n}\n`,
    );
    expect(text).toContain(required);
    expect(text).toContain("@WithLock('a', { wait: '1m' })");
  });
});

describe('what names another package', () => {
  it.each(['redis-semaphore', 'nestjs-simple-redis-lock', '@nestjs-redisx/locks'])(
    'is marked, and stays: %s',
    (name) => {
      for (const code of [
        `export { Mutex } from '${name}';`,
        `export * from '${name}';`,
        `let mutex: import('${name}').Mutex;`,
        `const all = await import('${name}');`,
        `jest.mock('${name}');`,
      ]) {
        const text = `${code}\n`;
        expect(after(text)).toMatch(/^\/\/ TODO\(nestjs-holdfast\): name what replaces it\. /);
        expect(codeAfter('a.ts', text)).toBe(text);
      }
    },
  );

  it('is marked by what is used of all its names', () => {
    const text = after(
      "import * as all from 'redis-semaphore';\n\nnew all.Semaphore(client, 'a', 5);\n",
    );
    expect(text).toContain('TODO(nestjs-holdfast): use the option "limit";');
  });
});

describe('a mark', () => {
  const withMutexes = (...lines: readonly string[]): string => withImport(lines.join('\n'));

  it('stands above a text that goes over several lines', () => {
    const code = "log(`The key is\n  ${new Mutex(client, 'a').key}\n`);";
    const text = after(withMutexes(code));
    expect(text).toMatch(/\n\n\/\/ TODO\(nestjs-holdfast\): inject .*\nlog\(`The/);
    expect(text).toContain(code);
  });

  it('is put above a line that was added below a marked one', () => {
    const first = after(withMutexes("const a = new Mutex(client, 'a'); // one"));
    const added = `${first}const b = new Mutex(client, 'b');\n`;
    const [mark] = /^\/\/ TODO.*\n/m.exec(first) ?? [''];
    expect(after(added)).toBe(added.replace('const b', `${mark}const b`));
  });
});
