import type ts from 'typescript';
import type { ImportChanges } from './import-changes.js';
import { isProvider } from './injection.js';
import { timesText } from './simple-redis-lock-times.js';
import type { Project } from './project.js';
import { findSection, type LockedSection } from './locked-section.js';
import { removeParameter } from './parameters.js';
import { isWithin, type Subject } from './subject.js';

const HEADING = 'nestjs-simple-redis-lock';

/** What is known of the file. */
interface Service {
  /** Where the class of the service is named. */
  readonly uses: readonly ts.Identifier[];
  /** Decorators that were not rewritten: they search the service in the object. */
  readonly decorators: readonly ts.Identifier[];
  readonly imports: ImportChanges;
  readonly project: Project;
}

/** Rewrites classes in which all that is done with the service is certain. Returns the uses that are left. */
export function rewriteService(subject: Subject, service: Service): readonly ts.Identifier[] {
  return service.uses.filter((use) => {
    const parameter = injectedBy(subject, use);
    const done = parameter !== undefined && rewriteClass(subject, use, parameter, service);
    if (!done) subject.mark(use, 'LockService replaces it: acquire(), or run().', HEADING);
    return !done;
  });
}

/** The parameter of a constructor that has this type. */
function injectedBy({ ts }: Subject, use: ts.Identifier): ts.ParameterDeclaration | undefined {
  const { parent: type } = use;
  if (!ts.isTypeReferenceNode(type) || !ts.isParameter(type.parent)) return undefined;
  return ts.isConstructorDeclaration(type.parent.parent) ? type.parent : undefined;
}

function rewriteClass(
  subject: Subject,
  use: ts.Identifier,
  parameter: ts.ParameterDeclaration,
  { decorators, imports, project }: Service,
): boolean {
  const { ts } = subject;
  const { parent: target } = parameter.parent;
  const { name } = parameter;
  const property = subject.propertyOf(parameter);
  if (property === undefined || !ts.isIdentifier(name)) return false;
  // With one of these, the type of the parameter does not say what is injected.
  if (ts.getDecorators(parameter) !== undefined || parameter.initializer !== undefined)
    return false;
  if (!ts.isClassDeclaration(target) || !isProvider(subject, target)) return false;
  if (decorators.some((node) => isWithin(node, target))) return false;
  const mentions = subject.mentionsOf(property).filter((node) => node !== name);
  const sections = mentions.flatMap((mention) => findSection(subject, mention) ?? []);
  const known = new Set(sections.flatMap(({ mentions: own }) => own));
  // Others may use what is not private.
  const isPrivate = parameter.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  if (isPrivate !== true || !subject.isOnly({ target, declaration: parameter, name }, known))
    return false;
  if (mentions.length === 0) {
    if (project.isConstructed(target)) return false;
    removeParameter(subject, parameter);
    return true;
  }
  const methods = new Set(sections.map(({ method }) => method));
  const isCertain =
    methods.size === sections.length &&
    sections.every((section) => optionsOf(subject, section) !== undefined);
  if (!isCertain || !imports.canWant('LockService')) return false;
  subject.rewriteNode(use, 'LockService');
  imports.want('LockService');
  for (const section of sections) rewriteSection(subject, section);
  return true;
}

function optionsOf(subject: Subject, { call }: LockedSection): string | undefined {
  const [, expire, interval, times] = call.arguments;
  return timesText(subject, [expire, interval, times]);
}

function rewriteSection(subject: Subject, section: LockedSection): void {
  const { lock, isInside, block, unlock, key } = section;
  const service = subject.textOf(section.call.expression.expression);
  const text = `const lock = await ${service}.acquire(${key}, ${String(optionsOf(subject, section))});`;
  if (isInside) {
    const { source, eol } = subject;
    const start = subject.startOf(block);
    const indent = /[\t ]*$/.exec(source.text.slice(0, start))?.[0] ?? '';
    subject.rewrite(lock, start, start, `${text}${eol}${indent}`);
    // With the line that it is on, and not with comments before it.
    const gap = /^[\t ]*\r?\n[\t ]*/.exec(source.text.slice(lock.end))?.[0] ?? '';
    subject.rewrite(lock, subject.startOf(lock), lock.end + gap.length, '');
  } else subject.rewriteNode(lock, text);
  subject.rewriteNode(unlock, 'await lock.release()', lock);
}
