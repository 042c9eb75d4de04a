import type ts from 'typescript';
import type { IsClass } from './instances.js';
import { planCall } from './redlock-calls.js';
import { holdersIn, isPlain, makingOf, mentionsOf, type Holder } from './redlock-holders.js';
import { commonRetries, retriesOf } from './redlock-settings.js';
import type { Migrating } from './source-library.js';
import { isWithin, type Subject } from './subject.js';

/** The part of the guide. */
const LEFT = 'what-the-codemod-leaves';

/**
 * Has `LockService` injected in place of Redlock, in each class in which all that is done with it is certain. Returns
 * what is gone: names of classes and types, and calls.
 */
export function rewriteToService(
  subject: Subject,
  isRedlock: IsClass,
  migrating: Migrating,
): ReadonlySet<ts.Node> {
  const gone = new Set<ts.Node>();
  if (!subject.isTypeScript || migrating.project.redlockTo === 'drop-in') return gone;
  const errors = errorNames(subject);
  const holders = holdersIn(subject, isRedlock);
  for (const holder of holders) {
    // Two Redlocks of one class may use different Redis servers.
    const isAlone = holders.every((it) => it === holder || it.target !== holder.target);
    const nodes =
      isAlone && errors.length === 0
        ? rewriteHolder(subject, holder, { isRedlock, migrating })
        : undefined;
    for (const node of nodes ?? []) gone.add(node);
    // A field that makes it gets the comment of `new Redlock`.
    if (nodes === undefined && holder.declaration.initializer === undefined)
      subject.mark(
        holder.declaration,
        'LockService replaces redlock. Not all that this class does with it could be rewritten.',
        LEFT,
      );
  }
  for (const node of errors)
    subject.mark(
      node,
      'LockService throws LockNotAcquiredError, LockLostError and LockStoreUnavailableError.',
      LEFT,
    );
  return gone;
}

/** Where the file names errors of redlock, which LockService does not throw. */
function errorNames(subject: Subject): readonly ts.Node[] {
  const { ts } = subject;
  return [
    ...subject
      .all(ts.isIdentifier)
      .filter(
        ({ text, parent }) =>
          /^(ExecutionError|ResourceLockedError)$/.test(text) &&
          !ts.isImportSpecifier(parent) &&
          !ts.isExportSpecifier(parent),
      ),
    ...subject
      .all(ts.isStringLiteralLike)
      .filter(({ text }) => /^(ExecutionError|ResourceLockedError|LockError)$/.test(text)),
  ];
}

/** Returns what is gone; `undefined` where something is not certain, and nothing was rewritten. */
function rewriteHolder(
  subject: Subject,
  holder: Holder,
  { isRedlock, migrating }: { readonly isRedlock: IsClass; readonly migrating: Migrating },
): readonly ts.Node[] | undefined {
  const { ts } = subject;
  const { target, declaration } = holder;
  const { injection, project } = migrating;
  const isInjected = ts.isParameter(declaration);
  const making = makingOf(subject, holder, isRedlock);
  if (!isPlain(subject, holder) || project.isConstructed(target)) return undefined;
  if (!isInjected && making === undefined) return undefined;
  const retries =
    making === undefined ? commonRetries(ts, project) : retriesOf(subject, making.made);
  const assignment = making?.statement;
  const mentions = mentionsOf(subject, holder);
  const plans = mentions.flatMap((mention) => planCall(subject, mention, retries) ?? []);
  const known = new Set([
    ...plans.flatMap((plan) => plan.mentions),
    ...mentions.filter((it) => assignment !== undefined && isWithin(it, assignment)),
  ]);
  const open = mentions.filter((mention) => !known.has(mention));
  for (const mention of open) subject.mark(mention, 'write this with LockService.', LEFT);
  if (open.length > 0 || plans.length === 0 || !subject.isOnly(holder, known)) return undefined;
  const service = isInjected ? injection.inPlaceOf(declaration, target) : injection.into(target);
  if (service === undefined) return undefined;
  if (!isInjected) subject.remove(declaration);
  if (assignment !== undefined) subject.remove(assignment);
  for (const plan of plans) plan.rewrite(service);
  return [
    ...subject.namesWithin(declaration),
    ...subject.namesWithin(assignment),
    ...plans.flatMap((plan) => plan.gone),
  ];
}
