import type ts from 'typescript';
import { prefixText, type Project } from './project.js';
import type { Subject } from './subject.js';

/** Says how to register `LockModule`, unless the application does, or another file says it. */
export function markModule(
  subject: Subject,
  node: ts.Node,
  keyPrefix: string,
  project: Project,
): void {
  if (!project.takeModuleMark(keyPrefix)) return;
  subject.mark(
    node,
    `register LockModule.forRoot({ redis, ${prefixText(keyPrefix)} }) once, so that old and new code exclude each other.`,
    'both-at-once',
  );
}
