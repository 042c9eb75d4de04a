import type ts from 'typescript';
import type { ImportChanges } from './import-changes.js';
import { removeParameter } from './parameters.js';
import type { Subject } from './subject.js';

/** Decorators of classes that Nest makes, with what their constructors name. */
const PROVIDERS = /^(Injectable|Controller|Resolver|Processor|WebSocketGateway)$/;

/** Names for the property, in the order in which they are tried. */
const NAMES = ['locks', 'lockService'];

const SERVICE = 'LockService';

/** Has `LockService` injected into classes, once each. */
export class Injection {
  readonly #subject: Subject;
  readonly #imports: ImportChanges;
  readonly #names = new Map<ts.ClassDeclaration, string>();

  constructor(subject: Subject, imports: ImportChanges) {
    this.#subject = subject;
    this.#imports = imports;
  }

  /** The class whose object is `this` there, if it is one that Nest makes. */
  classAround(node: ts.Node): ts.ClassDeclaration | undefined {
    const { ts } = this.#subject;
    let at = node.parent;
    while (!ts.isSourceFile(at)) {
      if (ts.isMethodDeclaration(at)) {
        const isStatic = at.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword);
        const { parent } = at;
        const fits =
          isStatic !== true && ts.isClassDeclaration(parent) && isProvider(this.#subject, parent);
        return fits ? parent : undefined;
      }
      // Another function has another `this`.
      if (ts.isFunctionLike(at) && !ts.isArrowFunction(at)) return undefined;
      at = at.parent;
    }
    return undefined;
  }

  /** The name of the property, which is added if there is none; `undefined` where it cannot be. */
  into(target: ts.ClassDeclaration): string | undefined {
    return this.#known(target) ?? this.#new(target, (text) => this.#add(target, text));
  }

  /** The same, in place of a parameter that is no longer needed. */
  inPlaceOf(parameter: ts.ParameterDeclaration, target: ts.ClassDeclaration): string | undefined {
    const known = this.#known(target);
    if (known !== undefined) {
      removeParameter(this.#subject, parameter);
      return known;
    }
    return this.#new(target, (text) => {
      this.#subject.rewriteNode(parameter, text);
      return true;
    });
  }

  #known(target: ts.ClassDeclaration): string | undefined {
    return this.#names.get(target) ?? this.#present(target);
  }

  #new(target: ts.ClassDeclaration, add: (parameter: string) => boolean): string | undefined {
    const name = NAMES.find((candidate) => !namesOf(this.#subject, target).has(candidate));
    if (name === undefined || !this.#imports.canWant(SERVICE)) return undefined;
    if (!add(`private readonly ${name}: ${SERVICE}`)) return undefined;
    this.#imports.want(SERVICE);
    this.#names.set(target, name);
    return name;
  }

  #present(target: ts.ClassDeclaration): string | undefined {
    const parameter = constructorOf(this.#subject, target)?.parameters.find(
      (each) =>
        each.type !== undefined &&
        this.#subject.textOf(each.type) === SERVICE &&
        this.#subject.propertyOf(each) !== undefined,
    );
    return parameter === undefined || !this.#imports.canWant(SERVICE)
      ? undefined
      : this.#subject.textOf(parameter.name);
  }

  #add(target: ts.ClassDeclaration, parameter: string): boolean {
    const subject = this.#subject;
    const { eol } = subject;
    const constructor = constructorOf(subject, target);
    if (constructor === undefined) {
      // The constructor that it inherits may have parameters.
      if (target.heritageClauses?.some((clause) => subject.textOf(clause).startsWith('extends')))
        return false;
      const indent = subject.indentOf(target.members[0] ?? target);
      const text = `${eol}${indent}constructor(${parameter}) {}${eol}`;
      const property = lastLeadingProperty(subject, target);
      const at = property?.end ?? target.members.pos;
      subject.rewrite(target, at, at, property === undefined ? text : `${eol}${text.trimEnd()}`);
      return true;
    }
    const { parameters } = constructor;
    const last = parameters.at(-1);
    if (last === undefined) {
      subject.rewrite(target, parameters.pos, parameters.pos, parameter);
      return true;
    }
    const isBelow = subject.source.text.slice(parameters.pos, subject.startOf(last)).includes('\n');
    const gap = isBelow ? `${eol}${subject.indentOf(last)}` : ' ';
    subject.rewrite(target, last.end, last.end, `,${gap}${parameter}`);
    return true;
  }
}

export const constructorOf = (
  { ts }: Subject,
  target: ts.ClassDeclaration,
): ts.ConstructorDeclaration | undefined =>
  target.members
    .filter((member) => ts.isConstructorDeclaration(member))
    .find(({ body }) => body !== undefined);

/** Whether Nest makes its objects. */
export function isProvider(subject: Subject, target: ts.ClassDeclaration): boolean {
  const { ts } = subject;
  return (ts.getDecorators(target) ?? []).some(({ expression }) => {
    const callee = ts.isCallExpression(expression) ? expression.expression : expression;
    return PROVIDERS.test(subject.textOf(callee));
  });
}

function namesOf(subject: Subject, target: ts.ClassDeclaration): ReadonlySet<string> {
  const members = target.members.map(({ name }) =>
    name === undefined ? '' : subject.textOf(name),
  );
  const parameters = constructorOf(subject, target)?.parameters ?? [];
  return new Set([...members, ...parameters.map(({ name }) => subject.textOf(name))]);
}

function lastLeadingProperty(
  { ts }: Subject,
  { members }: ts.ClassDeclaration,
): ts.ClassElement | undefined {
  const end = members.findIndex((member) => !ts.isPropertyDeclaration(member));
  return members[(end < 0 ? members.length : end) - 1];
}
