import type ts from 'typescript';
import { importsOf, otherMentions, usesOf } from './imports.js';
import { classNamed, isInstance, type IsClass } from './instances.js';
import { markModule } from './module-mark.js';
import {
  changeImport,
  FORK,
  HEADING,
  isClassName,
  OTHERS,
  PACKAGES,
  planImport,
} from './redlock-imports.js';
import { hasSpecial } from './lock-keys.js';
import { isGranted, rewriteOldCalls } from './redlock-4.js';
import { rewriteToService } from './redlock-service.js';
import { DEFAULTS, waitOf } from './redlock-settings.js';
import type { SourceLibrary } from './source-library.js';
import type { Subject } from './subject.js';
import { optionsIn } from './values.js';

/**
 * `redlock` 4 and 5 and its fork. Classes of Nest get `LockService` where that is certain. Elsewhere the import becomes
 * that of `@nestjs-holdfast/redlock`, which has the API of redlock 5.
 */
export const redlock: SourceLibrary = {
  packages: PACKAGES,
  migrate(subject, migrating) {
    const { imports, project } = migrating;
    const sites = importsOf(subject, PACKAGES);
    for (const node of otherMentions(subject, OTHERS, sites))
      subject.mark(node, 'name @nestjs-holdfast/redlock here as well.', HEADING);
    const plans = sites.map((site) => ({ site, plan: planImport(subject, site) }));
    const kept = plans.flatMap(({ plan }) => (plan.kind === 'keep' ? [plan] : []));
    for (const { at, problem } of kept) for (const node of at) subject.mark(node, problem, HEADING);
    // One file has one Redlock: a lock of the other one does not fit it.
    if (kept.length > 0) return;
    const isNamed = classNamed(subject, sites, isClassName);
    markBraces(subject, isNamed);
    const gone = rewriteToService(subject, isNamed, migrating);
    for (const { site, plan } of plans) {
      const unused = site.bindings.filter((binding) => {
        const uses = usesOf(subject, binding);
        return site.form !== 'require' && uses.length > 0 && uses.every((use) => gone.has(use));
      });
      for (const binding of unused) imports.drop(site, binding);
      const isUsed = unused.length === 0 || unused.length < site.bindings.length;
      if (isUsed && OTHERS.includes(site.from)) changeImport(subject, site, plan);
    }
    const isRedlock: IsClass = (name) => !gone.has(name) && isNamed(name);
    const isLock = classNamed(subject, sites, (name) => name === 'Lock');
    rewriteOldCalls(subject, isRedlock, isLock, gone);
    const isFork = classNamed(
      subject,
      sites.filter(({ from }) => from === FORK),
      isClassName,
    );
    markDatabases(subject, (name) => isRedlock(name) && isFork(name));
    markDifferences(subject, isRedlock);
    markLocks(subject, isRedlock, isLock);
    const [first] = sites;
    if (gone.size > 0 && first !== undefined) markModule(subject, first.statement, '', project);
  },
};

/** What the replacement does in another way, and what comes next. */
function markDifferences(subject: Subject, isRedlock: IsClass): void {
  const { ts } = subject;
  for (const node of subject.all(ts.isNewExpression)) {
    if (!isRedlock(node.expression)) continue;
    if (node.arguments?.[2] !== undefined)
      subject.mark(node, 'scripts cannot be replaced: remove the third argument.', HEADING);
    subject.mark(
      node,
      `the next major version removes @nestjs-holdfast/redlock: register LockModule, and inject LockService, with wait: ${waitOf(subject, node.arguments?.[1], DEFAULTS) ?? 'retryCount * retryDelay'}.`,
      HEADING,
    );
  }
  for (const call of subject.all(ts.isCallExpression)) markCall(subject, call, isRedlock);
}

/** No class with such a call gets LockService. */
function markBraces(subject: Subject, isRedlock: IsClass): void {
  const { ts } = subject;
  for (const call of subject.all(ts.isCallExpression)) {
    const { expression, arguments: given } = call;
    const [resources] = given;
    if (
      resources !== undefined &&
      ts.isPropertyAccessExpression(expression) &&
      /^(acquire|using|lock)$/.test(expression.name.text) &&
      isInstance(subject, expression.expression, isRedlock) &&
      hasSpecial(subject, resources)
    )
      subject.mark(
        call,
        'names with a brace, "<" or ">" are refused. A hash tag belongs into keyPrefix of LockModule: new Redlock(locks).',
        HEADING,
      );
  }
}

/** Where it is not seen that a database is named. */
function markDatabases(subject: Subject, isFork: IsClass): void {
  const { ts } = subject;
  for (const node of subject.all(ts.isNewExpression)) {
    if (!isFork(node.expression)) continue;
    const settings = optionsIn(subject, node.arguments?.[1]);
    if (settings?.has('db') !== true)
      subject.mark(
        node,
        'the locks were in database 0 unless the setting db named another one. If a client uses another database, set db: 0.',
        HEADING,
      );
  }
}

/** Where code makes a lock, and what it reads of one that is something else now. */
function markLocks(subject: Subject, isRedlock: IsClass, isLock: IsClass): void {
  const { ts } = subject;
  for (const node of subject.all(ts.isNewExpression))
    if (isLock(node.expression))
      subject.mark(node, 'only acquire() and extend() make a Lock.', HEADING);
  for (const node of subject.all(ts.isPropertyAccessExpression)) {
    const { expression, name } = node;
    const isOfLock = (): boolean =>
      isInstance(subject, expression, isLock) || isGranted(subject, expression, isRedlock);
    if (name.text === 'value' && isOfLock())
      subject.mark(node, 'value is the fencing token, and not what Redis keeps.', HEADING);
    if (name.text === 'votesAgainst' || (name.text === 'attempts' && isOfLock()))
      subject.mark(node, 'there is one attempt, with the result of all clients.', HEADING);
  }
}

function markCall(subject: Subject, call: ts.CallExpression, isRedlock: IsClass): void {
  const { ts } = subject;
  const { expression, arguments: given } = call;
  if (!ts.isPropertyAccessExpression(expression)) return;
  if (!isInstance(subject, expression.expression, isRedlock)) return;
  const { text: name } = expression.name;
  if (name === 'release' && given.length > 1)
    subject.mark(call, 'release() takes the lock only.', HEADING);
  const routine = given.at(-1);
  const takesContext =
    routine !== undefined &&
    (ts.isArrowFunction(routine) || ts.isFunctionExpression(routine)) &&
    routine.parameters.length > 1;
  if (name === 'using' && takesContext)
    subject.mark(call, 'the routine of using() gets the signal only.', HEADING);
}
