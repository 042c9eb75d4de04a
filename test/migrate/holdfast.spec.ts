import { describe, expect, it } from '@jest/globals';
import { channelNameOf, FORMER_EVENTS } from '../../lib/observe/channels.js';
import { LOCK_MODULE } from '../../lib/options/lock-module-options.js';
import { migrated, textAfter } from './migrated.js';

const IMPORTS =
  "import { LockModule, LockOptionsFactory, LockService, WithLock } from 'nestjs-holdfast';\n" +
  "import { createTestLocks } from 'nestjs-holdfast/testing';\n";

const after = (code: string): string => textAfter('a.ts', IMPORTS + code).replace(IMPORTS, '');

describe('the former names of nestjs-holdfast', () => {
  it.each(Object.entries(FORMER_EVENTS))('are those of the library: %s is %s', (former, name) => {
    const watch = (event: string): string =>
      `const on = (locks: LockService) => locks.on('${event}', () => undefined);\n`;
    expect(after(watch(former))).toBe(watch(name));
    const subscribe = (event: string): string =>
      `import { subscribe } from 'node:diagnostics_channel';\nsubscribe('${channelNameOf(event)}', log);\n`;
    expect(after(subscribe(former))).toBe(subscribe(name));
  });

  it.each(Object.entries(LOCK_MODULE.formerNames ?? {}))(
    'are those of the library: %s is %s',
    (former, name) => {
      const register = (option: string): string => `LockModule.forRoot({ redis, ${option}: 1 });\n`;
      expect(after(register(former))).toBe(register(name));
    },
  );

  it.each([
    ['an emitter', "emitter.on('once', listener);"],
    ['a service whose type is in another file', "this.locks.on('once', listener);"],
    ['a service with the name of ours', 'const on = (locks: Locks) => locks.use(orderLock);'],
    [
      'a name that another declaration has, too',
      "function on(LockService) { LockService.on('once'); }",
    ],
    ['an option of another module', 'ClockModule.forRoot({ maxClockStep: 1 });'],
    ['an option within an option', 'LockModule.forRoot({ redis: { maxClockStep: 1 } });'],
    ['a second argument', 'LockModule.forRoot({}, { maxClockStep: 1 });'],
    ['a factory of another provider', '({ provide: A, useFactory: () => ({ maxClockStep: 1 }) });'],
    ['a text of a channel that nobody subscribes to', "log('holdfast:once');"],
    ['a key function', 'class A { @WithLock((id) => `a:<params.id>`) async a(id: string) {} }'],
    ['a parameter of this name', "class A { @WithLock('a:<params.id>') async a(params: P) {} }"],
    ['a parameter that is a rest', "class A { @WithLock('a:<query.0>') async a(...query: P) {} }"],
    ['an option that is asserted to be of another type', 'use({ maxClockStep: 1 } as Other);'],
    ['an option of a function', 'use({ maxClockStep: 1 });'],
    [
      'a factory that is an argument of ours',
      'createTestLocks({ useFactory: () => ({ maxClockStep: 1 }) });',
    ],
    [
      'a method of a class that makes other options',
      'class A { createLockOptions() { return { maxClockStep: 1 }; } }',
    ],
    [
      'another method of a class that makes the options',
      'class A implements LockOptionsFactory { createOther() { return { maxClockStep: 1 }; } }',
    ],
    [
      'another part of what a test gets',
      "const { clock } = createTestLocks(); clock.on('once', l);",
    ],
    ['what is got of the service', "registry.getHistory(LockService).on('once', listener);"],
    ['user', "class A { @WithLock('a:<user.id>') async a() {} }"],
    ['another decorator', "class A { @Cached('a:<params.id>') async a() {} }"],
  ])('are not those of %s', (_, code) => {
    expect(migrated('a.ts', `${IMPORTS}${code}\n`)).toEqual({ kind: 'untouched' });
  });

  it.each(["('a:<params.id>')", "['a:<params.id>'] as const", "('a:<params.id>' as const)"])(
    'are replaced in a key that is written %s',
    (key) => {
      const method = (written: string): string => `class A { @WithLock(${written}) async a() {} }`;
      expect(after(method(key))).toBe(method(key.replace('params', 'request.params')));
    },
  );

  it('leave a file unread that has none', () => {
    expect(migrated('a.ts', `${IMPORTS}let x = ;\n`)).toEqual({ kind: 'untouched' });
    expect(migrated('a.ts', `${IMPORTS}let x = ; // handedOn\n`)).toMatchObject({
      kind: 'unparsable',
    });
  });
});
