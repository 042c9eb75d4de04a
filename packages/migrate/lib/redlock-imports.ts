import type ts from 'typescript';
import { usesOf, type Binding, type ImportSite } from './imports.js';
import type { Subject } from './subject.js';

/** The part of the guide. */
export const HEADING = 'redlock-5';

export const DROP_IN = '@nestjs-holdfast/redlock';

/** The fork, whose locks are in database 0 unless a setting names another one. */
export const FORK = '@sesamecare-oss/redlock';

/** Packages with this API that are not ours. */
export const OTHERS: readonly string[] = ['redlock', FORK];

export const PACKAGES: readonly string[] = [...OTHERS, DROP_IN];

/** What `@nestjs-holdfast/redlock` exports. */
const EXPORTED = new Set([
  'default',
  'Redlock',
  'Lock',
  'ExecutionError',
  'ResourceLockedError',
  'ExecutionResult',
  'ExecutionStats',
  'RedlockAbortSignal',
  'Settings',
]);

/** How a statement is changed, or why it is not. */
export type ImportPlan =
  | { readonly kind: 'specifier' }
  | { readonly kind: 'class'; readonly local: string }
  | { readonly kind: 'keep'; readonly at: readonly ts.Node[]; readonly problem: string };

/** Decides what an import of redlock becomes. */
export function planImport(subject: Subject, site: ImportSite): ImportPlan {
  const [whole] = site.bindings.filter(({ imported }) => imported === '*');
  if (whole !== undefined) return planWhole(subject, site, whole);
  const unknown = site.names.filter((name) => !EXPORTED.has(name));
  if (unknown.length > 0)
    return keep([site.statement], `@nestjs-holdfast/redlock has no ${unknown.join(', ')}.`);
  const statics = site.bindings
    .filter(({ imported }) => isClassName(imported))
    .flatMap((binding) => staticsOf(subject, binding));
  return statics.length === 0 ? { kind: 'specifier' } : keepFor(subject, statics);
}

/** `import * as`, `import = require`, `const … = require`: with redlock 4 the class, with redlock 5 all of the module. */
function planWhole(subject: Subject, site: ImportSite, binding: Binding): ImportPlan {
  const { ts } = subject;
  const members = staticsOf(subject, binding);
  const others = usesOf(subject, binding).length - members.length;
  if (members.length === 0) return { kind: 'class', local: binding.local.text };
  const areExports = members.every((node) => {
    const { parent } = node;
    const name = ts.isQualifiedName(parent)
      ? parent.right
      : (parent as ts.PropertyAccessExpression).name;
    return EXPORTED.has(name.text);
  });
  // `Redlock.Lock` beside `new Redlock()` are types of redlock 4.
  return others === 0 && areExports && site.bindings.length === 1
    ? { kind: 'specifier' }
    : keepFor(subject, members);
}

/** Uses of what belongs to the class, or to the module. */
const staticsOf = (subject: Subject, binding: Binding): readonly ts.Identifier[] =>
  usesOf(subject, binding).filter((node) => {
    const { ts } = subject;
    const { parent } = node;
    return (
      (ts.isPropertyAccessExpression(parent) && parent.expression === node) ||
      (ts.isQualifiedName(parent) && parent.left === node)
    );
  });

export const isClassName = (imported: string): boolean =>
  imported === 'default' || imported === 'Redlock' || imported === '*';

const keepFor = (subject: Subject, nodes: readonly ts.Identifier[]): ImportPlan => {
  const names = new Set(nodes.map(({ parent }) => subject.textOf(parent)));
  return keep(nodes, `@nestjs-holdfast/redlock has no ${[...names].join(', ')}.`);
};

const keep = (at: readonly ts.Node[], problem: string): ImportPlan => ({
  kind: 'keep',
  at,
  problem,
});

/** Makes the change. */
export function changeImport(subject: Subject, site: ImportSite, plan: ImportPlan): void {
  const { specifier, statement, form } = site;
  const quote = subject.textOf(specifier).charAt(0);
  const target = `${quote}${DROP_IN}${quote}`;
  if (plan.kind === 'specifier') subject.rewriteNode(specifier, target, statement);
  if (plan.kind !== 'class') return;
  const end = subject.semicolonOf(statement);
  const { local } = plan;
  if (form === 'require') {
    const names = local === 'Redlock' ? local : `Redlock: ${local}`;
    const keyword = /^\w+/.exec(subject.textOf(statement))?.[0] ?? 'const';
    subject.rewriteNode(statement, `${keyword} { ${names} } = require(${target})${end}`);
    return;
  }
  const names = local === 'Redlock' ? local : `Redlock as ${local}`;
  subject.rewriteNode(statement, `import { ${names} } from ${target}${end}`);
}
