import type ts from 'typescript';
import { importsOf, otherMentions, usesOf, withNames, type Binding } from './imports.js';
import type { ImportChanges } from './import-changes.js';
import { decoratedBy, returnsPromise } from './decorated.js';
import { keyFunctionText, templateText } from './lock-keys.js';
import { markModule } from './module-mark.js';
import { rewriteService } from './simple-redis-lock-service.js';
import { timesText } from './simple-redis-lock-times.js';
import type { SourceLibrary } from './source-library.js';
import type { Subject } from './subject.js';

const HEADING = 'nestjs-simple-redis-lock';

/** `nestjs-simple-redis-lock`: `@RedisLock` becomes `@WithLock`, and `lock` with `unlock` in `finally` becomes `acquire`. */
export const simpleRedisLock: SourceLibrary = {
  packages: ['nestjs-simple-redis-lock'],
  migrate(subject, { imports, project }) {
    const sites = importsOf(subject, simpleRedisLock.packages);
    const before = subject.rewritten;
    const left: ts.Identifier[] = [];
    // Decorators that stay need the service on their object.
    const names = sites
      .flatMap((site) => site.bindings.map((binding) => ({ site, binding })))
      .sort((one, other) => rankOf(one.binding) - rankOf(other.binding));
    for (const { site, binding } of names) {
      const uses = usesOf(subject, binding);
      const isValue = site.form === 'import';
      const kept =
        binding.imported === 'RedisLock'
          ? rewriteDecorators(subject, uses, imports)
          : binding.imported === 'RedisLockService' && isValue
            ? rewriteService(subject, { uses, decorators: left, imports, project })
            : markAll(subject, uses, HINTS[binding.imported]);
      if (binding.imported === 'RedisLock') left.push(...kept);
      if (kept.length === 0 && isValue) imports.drop(site, binding);
    }
    for (const node of otherMentions(subject, simpleRedisLock.packages, withNames(sites)))
      subject.mark(node, 'name what replaces it.', HEADING);
    const [first] = sites;
    if (subject.rewritten > before && first !== undefined)
      markModule(subject, first.statement, 'lock:', project);
  },
};

const HINTS: Readonly<Record<string, string>> = {
  RedisLockService: 'LockService replaces it: acquire(), or run().',
  RedisLockModule: 'LockModule.forRoot({ redis }) replaces it; "prefix" is "keyPrefix".',
};

const rankOf = ({ imported }: Binding): number => (imported === 'RedisLock' ? 0 : 1);

/** Returns those that are left. */
function rewriteDecorators(
  subject: Subject,
  uses: readonly ts.Identifier[],
  imports: ImportChanges,
): readonly ts.Identifier[] {
  if (!imports.canWant('WithLock')) return markAll(subject, uses, '@WithLock replaces it.');
  const left = uses.filter((use) => !rewriteDecorator(subject, use));
  if (left.length < uses.length) imports.want('WithLock');
  return left;
}

function markAll(
  subject: Subject,
  uses: readonly ts.Identifier[],
  text = 'nestjs-holdfast has nothing of this name.',
): readonly ts.Identifier[] {
  for (const use of uses) subject.mark(use, text, HEADING);
  return uses;
}

/** Whether it was. */
function rewriteDecorator(subject: Subject, use: ts.Identifier): boolean {
  const decorated = decoratedBy(subject, use);
  if (decorated === undefined) {
    subject.mark(use, '@WithLock replaces it.', HEADING);
    return false;
  }
  const { call, method } = decorated;
  const [key, expire, interval, times, another] = call.arguments;
  if (!returnsPromise(subject, method)) {
    subject.mark(call, '@WithLock needs a method that returns a Promise: make it async.', HEADING);
    return false;
  }
  const text =
    key === undefined
      ? undefined
      : (templateText(subject, key) ?? keyFunctionText(subject, key, method, { skipped: 1 }));
  if (text === undefined || another !== undefined) {
    subject.mark(
      call,
      '@WithLock takes a template, or a function of the typed parameters with the object as "this".',
      'a-key-that-depends-on-the-instance',
    );
    return false;
  }
  const options = timesText(subject, [expire, interval, times]);
  if (options === undefined) {
    subject.mark(call, 'the ttl of @WithLock has at least 50 ms.', HEADING);
    return false;
  }
  subject.rewriteNode(call, `WithLock(${text}, ${options})`);
  return true;
}
