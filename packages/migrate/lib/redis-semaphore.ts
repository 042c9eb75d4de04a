import type ts from 'typescript';
import { importsOf, otherMentions, usesOf, withNames, type Binding } from './imports.js';
import { mayDiffer, planMutex, type MutexPlan } from './mutex-plan.js';
import { markModule } from './module-mark.js';
import type { SourceLibrary } from './source-library.js';
import type { Subject } from './subject.js';
import { optionsText } from './values.js';

const HEADING = 'redis-semaphore';

const HINTS: Readonly<Record<string, string>> = {
  Mutex: 'inject LockService, and take the lock with acquire() or run().',
  RedlockMutex: 'list the masters in LockModule, and take the lock with acquire() or run().',
  Semaphore: 'use the option "limit"; it does not see the semaphores that the old code holds.',
  MultiSemaphore:
    'use the options "limit" and "places"; they do not see the semaphores that the old code holds.',
  RedlockSemaphore: 'the option "limit" is refused over several masters.',
  RedlockMultiSemaphore: 'the option "limit" is refused over several masters.',
  TimeoutError: 'LockNotAcquiredError is what acquire() and run() throw.',
  LostLockError: 'LockLostError is what run() throws, and the reason of lock.signal.',
};

const DIFFERENT =
  'LockService replaces redis-semaphore. The mutexes of this file may use different Redis servers.';

/** `redis-semaphore`: a `Mutex` that is taken where it is made becomes `acquire()`. */
export const redisSemaphore: SourceLibrary = {
  packages: ['redis-semaphore'],
  migrate(subject, { imports, injection, project }) {
    const sites = importsOf(subject, redisSemaphore.packages);
    const before = subject.rewritten;
    for (const site of sites) {
      for (const binding of site.bindings) {
        const isMutex = binding.imported === 'Mutex';
        const isUnclear = isMutex && mayDiffer(subject, binding, injection);
        const left = usesOf(subject, binding).filter((use) => {
          const plan = isMutex && !isUnclear ? planMutex(subject, use, injection) : undefined;
          if (plan === undefined) return true;
          const service = injection.into(plan.target);
          if (service === undefined) return true;
          rewriteMutex(subject, plan, service);
          return false;
        });
        markUses(subject, binding, left, isUnclear ? DIFFERENT : undefined);
        if (left.length === 0 && site.form === 'import') imports.drop(site, binding);
      }
    }
    for (const node of otherMentions(subject, redisSemaphore.packages, withNames(sites)))
      subject.mark(node, 'name what replaces it.', HEADING);
    const [first] = sites;
    if (subject.rewritten > before && first !== undefined)
      markModule(subject, first.statement, 'mutex:', project);
  },
};

function rewriteMutex(subject: Subject, plan: MutexPlan, service: string): void {
  const { declaration, acquire, name, key, options } = plan;
  const list = [key, optionsText(options)].filter((text) => text !== '').join(', ');
  const { text } = subject.source;
  const gap = /^\s*/.exec(text.slice(declaration.end))?.[0] ?? '';
  subject.rewrite(acquire, subject.startOf(declaration), declaration.end + gap.length, '');
  subject.rewriteNode(acquire, `const ${name} = await this.${service}.acquire(${list});`);
  for (const node of plan.isAcquired) subject.rewriteNode(node, 'isHeld', acquire);
}

function markUses(
  subject: Subject,
  { imported }: Binding,
  uses: readonly ts.Identifier[],
  problem: string | undefined,
): void {
  const { ts } = subject;
  for (const use of uses) {
    if (ts.isExportSpecifier(use.parent)) continue;
    const isNamespace = imported === '*' && ts.isPropertyAccessExpression(use.parent);
    const name = isNamespace ? use.parent.name.text : imported;
    const hint = problem ?? HINTS[name] ?? 'nestjs-holdfast has nothing of this name.';
    subject.mark(use, hint, HEADING);
  }
}
