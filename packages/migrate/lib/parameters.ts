import type ts from 'typescript';
import type { Subject } from './subject.js';

/** Removes a parameter, with the comma that it needed. */
export function removeParameter(subject: Subject, parameter: ts.ParameterDeclaration): void {
  const { parameters } = parameter.parent;
  const index = parameters.indexOf(parameter);
  const next = parameters[index + 1];
  const before = parameters[index - 1];
  if (next !== undefined)
    subject.rewrite(parameter, subject.startOf(parameter), subject.startOf(next), '');
  else if (before !== undefined) subject.rewrite(parameter, before.end, parameter.end, '');
  else subject.rewrite(parameter, subject.startOf(parameter), parameters.end, '');
}
