import type ts from 'typescript';
import { constructorOf, isProvider } from './injection.js';
import { isInstance, type IsClass } from './instances.js';
import type { Subject } from './subject.js';

/** A parameter or a field in which a class that Nest makes has its Redlock. */
export interface Holder {
  readonly target: ts.ClassDeclaration;
  readonly declaration: ts.ParameterDeclaration | ts.PropertyDeclaration;
  readonly name: ts.Identifier;
}

/** The `new Redlock(…)` of a class that creates its own. */
interface Making {
  readonly made: ts.NewExpression;
  /** `this.redlock = new Redlock(…);` in the constructor, unless the field has it. */
  readonly statement: ts.Statement | undefined;
}

export function holdersIn(subject: Subject, isRedlock: IsClass): readonly Holder[] {
  const { ts } = subject;
  return subject
    .all(ts.isClassDeclaration)
    .filter((target) => isProvider(subject, target))
    .flatMap((target) =>
      [
        ...(constructorOf(subject, target)?.parameters ?? []),
        ...target.members.filter((member) => ts.isPropertyDeclaration(member)),
      ].flatMap((declaration) => {
        const { name } = declaration;
        const isHolder = ts.isIdentifier(name) && isInstance(subject, name, isRedlock);
        return isHolder ? [{ target, declaration, name }] : [];
      }),
    );
}

/** Whether nothing but this class uses it, and Nest does nothing with it but inject it. */
export function isPlain(subject: Subject, { declaration }: Holder): boolean {
  const { ts } = subject;
  const modifiers = ts.getModifiers(declaration)?.map((each) => subject.textOf(each)) ?? [];
  const decorators = ts.getDecorators(declaration) ?? [];
  return (
    modifiers.includes('private') &&
    !modifiers.includes('static') &&
    (declaration.type === undefined || ts.isTypeReferenceNode(declaration.type)) &&
    declaration.questionToken === undefined &&
    (ts.isParameter(declaration)
      ? declaration.initializer === undefined &&
        decorators.every((each) => subject.textOf(each).startsWith('@Inject'))
      : decorators.length === 0)
  );
}

/** Where the class uses the property; its declaration is none of these. */
export function mentionsOf(
  subject: Subject,
  { declaration, name }: Holder,
): readonly ts.Identifier[] {
  const property = subject.ts.isParameter(declaration)
    ? subject.propertyOf(declaration)
    : subject.symbolOf(name);
  return subject.mentionsOf(property).filter((mention) => mention !== name);
}

/** The only place that creates it. Its clients are variables or properties: they stay when the Redlock goes. */
export function makingOf(subject: Subject, holder: Holder, isRedlock: IsClass): Making | undefined {
  const { ts } = subject;
  const { declaration } = holder;
  if (ts.isParameter(declaration)) return undefined;
  const body = constructorOf(subject, holder.target)?.body;
  const assigned = mentionsOf(subject, holder).flatMap(({ parent: { parent } }) =>
    ts.isBinaryExpression(parent) &&
    parent.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
    ts.isExpressionStatement(parent.parent) &&
    parent.parent.parent === body
      ? [{ made: parent.right, statement: parent.parent }]
      : [],
  );
  const [only, another] = [
    ...(declaration.initializer === undefined
      ? []
      : [{ made: declaration.initializer, statement: undefined }]),
    ...assigned,
  ];
  if (only === undefined || another !== undefined) return undefined;
  const { made, statement } = only;
  if (!ts.isNewExpression(made) || !isRedlock(made.expression)) return undefined;
  const [clients] = made.arguments ?? [];
  const areKnown =
    clients !== undefined &&
    ts.isArrayLiteralExpression(clients) &&
    clients.elements.every(
      (client) => ts.isIdentifier(client) || ts.isPropertyAccessExpression(client),
    );
  return areKnown ? { made, statement } : undefined;
}
