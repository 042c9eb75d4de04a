import type ts from 'typescript';
import type { Compiler } from './compiler.js';
import { importsOf } from './imports.js';
import { classNamed } from './instances.js';
import { parse } from './parse.js';
import type { Project } from './project.js';
import { isClassName, PACKAGES } from './redlock-imports.js';
import type { Subject } from './subject.js';
import { numberIn, optionsIn, waitText } from './values.js';

/** How a Redlock, or one call of it, tries again. What is missing is not known. */
export interface Retries {
  readonly retryCount?: number;
  readonly retryDelay?: number;
}

/** The defaults of redlock 4 and 5. */
export const DEFAULTS: Required<Retries> = { retryCount: 10, retryDelay: 200 };

/** What settings say of retries; `undefined` where they are not written out, or say what a call cannot. */
function retriesIn(subject: Subject, settings: ts.Expression | undefined): Retries | undefined {
  const given = optionsIn(subject, settings);
  if (given === undefined) return undefined;
  const retries: Record<string, number> = {};
  for (const [name, { value }] of given) {
    // These settings have no counterpart, and need none.
    if (/^(retryJitter|automaticExtensionThreshold)$/.test(name)) continue;
    const number = numberIn(subject, value);
    // This value is the default of LockModule, too.
    if (name === 'driftFactor' && number === 0.01) continue;
    if (!(name in DEFAULTS) || number === undefined) return undefined;
    if (number < 0 && !(name === 'retryCount' && number === -1)) return undefined;
    retries[name] = number;
  }
  return retries;
}

/** The `wait` of a call with these settings; `undefined` where it is not certain. */
export function waitOf(
  subject: Subject,
  settings: ts.Expression | undefined,
  instance: Retries,
): string | undefined {
  const own = retriesIn(subject, settings);
  const { retryCount, retryDelay } = { ...instance, ...own };
  if (own === undefined || retryCount === undefined) return undefined;
  if (retryCount > 0 && retryDelay === undefined) return undefined;
  return waitText(subject, retryCount, retryDelay ?? 0);
}

/** The retries of `new Redlock(clients, settings)`. */
export function retriesOf(subject: Subject, made: ts.NewExpression): Retries {
  const [, settings, scripts] = made.arguments ?? [];
  const own = scripts === undefined ? retriesIn(subject, settings) : undefined;
  return own === undefined ? {} : { ...DEFAULTS, ...own };
}

const common = new WeakMap<Project, Retries>();

/** The retries of every Redlock that can be injected, if all have the same. */
export function commonRetries(ts: Compiler, project: Project): Retries {
  const known = common.get(project);
  if (known !== undefined) return known;
  const all = project.textsNaming(PACKAGES).flatMap((text) => retriesOfFile(ts, text));
  const [first = {}] = all;
  const areSame = all.every(
    ({ retryCount, retryDelay }) =>
      retryCount === first.retryCount && retryDelay === first.retryDelay,
  );
  const retries = areSame ? first : {};
  common.set(project, retries);
  return retries;
}

/** The retries of each Redlock that a file creates, except those that a class creates for itself. */
function retriesOfFile(compiler: Compiler, text: string): readonly Retries[] {
  const parsed = parse(compiler, '/application/redlock.ts', text);
  if (parsed.kind === 'unparsable') return [{}];
  const { subject } = parsed;
  const { ts } = subject;
  const isRedlock = classNamed(subject, importsOf(subject, PACKAGES), isClassName);
  const isOwn = ({ parent }: ts.Node): boolean =>
    ts.isPropertyDeclaration(parent) ||
    (ts.isBinaryExpression(parent) && subject.textOf(parent.left).startsWith('this.'));
  const made = subject
    .all(ts.isNewExpression)
    .filter((each) => isRedlock(each.expression) && !isOwn(each))
    .map((each) => retriesOf(subject, each));
  // A class that extends Redlock may have its settings anywhere.
  const extending = subject
    .all(ts.isExpressionWithTypeArguments)
    .filter(({ expression }) => isRedlock(expression));
  return [...made, ...extending.map(() => ({}))];
}
