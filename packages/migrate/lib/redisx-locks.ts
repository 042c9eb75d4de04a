import type ts from 'typescript';
import { decoratedBy, returnsPromise, type DecoratedNode } from './decorated.js';
import { importsOf, otherMentions, usesOf, withNames, type Binding } from './imports.js';
import type { ImportChanges } from './import-changes.js';
import { hasPositions, keyFunctionText, positionsText } from './lock-keys.js';
import { markModule } from './module-mark.js';
import type { SourceLibrary } from './source-library.js';
import type { Subject } from './subject.js';
import { isTooShort, numberIn, optionsIn, optionsText, waitMs, type Given } from './values.js';

const HEADING = 'nestjs-redisxlocks';

const HINTS: Readonly<Record<string, string>> = {
  LocksPlugin: 'LockModule.forRoot({ redis }) replaces it.',
  LOCK_SERVICE: 'inject LockService by its class.',
  ILockService: 'LockService replaces it.',
  ILock: 'Lock replaces it; isHeld is a property.',
};

/** `@nestjs-redisx/locks`: its `@WithLock` becomes ours, if that is certain of all in the file. */
export const redisxLocks: SourceLibrary = {
  packages: ['@nestjs-redisx/locks'],
  migrate(subject, { imports, project }) {
    const sites = importsOf(subject, redisxLocks.packages);
    for (const site of sites)
      for (const binding of site.bindings) {
        const { imported } = binding;
        const uses = usesOf(subject, binding);
        if (
          imported === 'WithLock' &&
          site.form === 'import' &&
          rewriteAll(subject, uses, imports, binding)
        ) {
          imports.drop(site, binding);
          if (uses.some(({ parent }) => hasPositions(parent as ts.Expression)))
            markEncoding(subject, site.statement);
          markModule(subject, site.statement, '_lock:', project);
        } else if (imported !== 'WithLock')
          for (const use of uses)
            subject.mark(
              use,
              HINTS[imported] ?? 'nestjs-holdfast has nothing of this name.',
              HEADING,
            );
      }
    for (const node of otherMentions(subject, redisxLocks.packages, withNames(sites)))
      subject.mark(node, 'name what replaces it.', HEADING);
  },
};

const markEncoding = (subject: Subject, statement: ts.Statement): void => {
  subject.mark(
    statement,
    'templates encode values with ":" and the like. If there are such values, old and new code use other keys for them.',
    'both-at-once',
  );
};

/** All or none: both decorators have one name. */
function rewriteAll(
  subject: Subject,
  uses: readonly ts.Identifier[],
  imports: ImportChanges,
  binding: Binding,
): boolean {
  const plans = uses.map((use) => planOf(subject, use));
  const problems = plans.flatMap((plan, index) => {
    const use = uses[index];
    return 'problem' in plan && use !== undefined ? [{ use, problem: plan.problem }] : [];
  });
  for (const { use, problem } of problems) subject.mark(use, problem, HEADING);
  if (problems.length > 0 || !imports.canWant('WithLock', binding)) return false;
  for (const plan of plans) {
    if ('problem' in plan) continue;
    subject.rewriteNode(plan.call, `WithLock(${plan.text})`);
  }
  if (uses.length > 0) imports.want('WithLock');
  return true;
}

type Plan =
  { readonly call: ts.CallExpression; readonly text: string } | { readonly problem: string };

function planOf(subject: Subject, use: ts.Identifier): Plan {
  const decorated = decoratedBy(subject, use);
  if (decorated === undefined) return { problem: 'WithLock(key, options) replaces it.' };
  if (!returnsPromise(subject, decorated.method))
    return { problem: '@WithLock needs a method that returns a Promise: make it async.' };
  const given = optionsIn(subject, decorated.call.arguments[0]);
  const key = given?.get('key');
  if (given === undefined || key === undefined)
    return { problem: 'write @WithLock(key, options) with the options of this object.' };
  const keyText =
    positionsText(subject, key.value) ??
    keyFunctionText(subject, key.value, decorated.method, { skipped: 0 });
  if (keyText === undefined)
    return { problem: 'write the key as a template, or as a function of the typed parameters.' };
  const options = optionsOf(subject, given, decorated);
  if (typeof options === 'string') return { problem: options };
  const text = [keyText, optionsText(options)].filter((part) => part !== '').join(', ');
  return { call: decorated.call, text };
}

/** The options of ours, or the problem. */
function optionsOf(
  subject: Subject,
  given: ReadonlyMap<string, Given>,
  { method }: DecoratedNode,
): Readonly<Record<string, string | undefined>> | string {
  const known = new Set(['key', 'ttl', 'waitTimeout', 'autoRenew', 'retry', 'onLockFailed']);
  const unknown = [...given.keys()].find((name) => !known.has(name));
  if (unknown !== undefined) return `@WithLock has no option "${unknown}".`;
  const timeout = given.get('waitTimeout');
  const isAtOnce = timeout !== undefined && numberIn(subject, timeout.value) === 0;
  if (isTooShort(subject, given.get('ttl')?.value)) return '"ttl" has at least 50 ms.';
  if (!isAtOnce && isTooShort(subject, timeout?.value))
    return '"wait" is 0, or has at least 50 ms.';
  const wait = timeout?.text ?? waitOf(subject, given.get('retry'));
  if (wait === undefined) return '"retry" becomes "wait", the sum of its delays.';
  const onLocked = onLockedText(subject, given.get('onLockFailed'), method);
  if (onLocked === undefined) return 'write "onLockFailed" as "onLocked".';
  return {
    ttl: given.get('ttl')?.text,
    wait,
    autoExtend: given.get('autoRenew')?.text,
    onLocked: onLocked === '' ? undefined : onLocked,
  };
}

/** The defaults of the plugin: each delay is twice the one before, up to 3 s. */
const [RETRIES, FIRST_DELAY_MS, LONGEST_DELAY_MS] = [3, 100, 3_000];

function waitOf(subject: Subject, retry: Given | undefined): string | undefined {
  const given = retry === undefined ? new Map<string, Given>() : optionsIn(subject, retry.value);
  const numberOf = (name: string, otherwise: number): number | undefined => {
    const option = given?.get(name);
    return option === undefined ? otherwise : numberIn(subject, option.value);
  };
  const retries = numberOf('maxRetries', RETRIES);
  const first = numberOf('initialDelay', FIRST_DELAY_MS);
  if (given === undefined || retries === undefined || first === undefined) return undefined;
  if (retries === 0) return '0';
  const delays = Array.from({ length: retries }, (_, n) =>
    Math.min(first * 2 ** n, LONGEST_DELAY_MS),
  );
  const sum = delays.reduce((total, delay) => total + delay, 0);
  const sumText =
    delays.length > 5
      ? `${String(retries)} delays from ${String(first)} ms`
      : `${delays.join(' + ')} ms`;
  return `${String(waitMs(sum))} /* ${sumText}${retry === undefined ? ', the default retries of LocksPlugin' : ''} */`;
}

/** Empty for the default. */
function onLockedText(
  subject: Subject,
  given: Given | undefined,
  method: ts.MethodDeclaration,
): string | undefined {
  const { ts } = subject;
  if (given === undefined) return '';
  const { value } = given;
  if (ts.isStringLiteralLike(value)) {
    if (value.text === 'throw') return '';
    const result = method.type === undefined ? 'undefined' : subject.textOf(method.type);
    return /\b(void|undefined)\b/.test(result) ? given.text : undefined;
  }
  if (!ts.isArrowFunction(value) || value.parameters.length > 0 || ts.isBlock(value.body))
    return undefined;
  return `() => { throw ${subject.textOf(value.body)}; }`;
}
