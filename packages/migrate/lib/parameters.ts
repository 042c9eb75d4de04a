import type ts from 'typescript';
import type { Subject } from './subject.js';

/** Removes a parameter, with the comma that it needed and the comment that follows it in its line. */
export function removeParameter(subject: Subject, parameter: ts.ParameterDeclaration): void {
  const { parameters } = parameter.parent;
  const { text } = subject.source;
  const index = parameters.indexOf(parameter);
  const next = parameters[index + 1];
  const before = parameters[index - 1];
  const start = subject.startOf(parameter);
  if (next !== undefined) {
    subject.rewrite(parameter, start, startOfNext(text, next.pos), '');
    return;
  }
  if (before === undefined) {
    subject.rewrite(parameter, start, parameters.end, '');
    return;
  }
  const end = parameters.hasTrailingComma ? parameters.end : parameter.end;
  const restOfLine = REST_OF_LINE.exec(text.slice(end))?.[0] ?? '';
  // What stands in the line of the parameter before is said of that one.
  const lineBefore = REST_OF_LINE.exec(text.slice(parameter.pos))?.[0];
  if (lineBefore === undefined) subject.rewrite(parameter, before.end, parameter.end, '');
  else {
    if (!parameters.hasTrailingComma) subject.rewrite(parameter, before.end, parameter.pos, '');
    subject.rewrite(parameter, parameter.pos + lineBefore.length, end + restOfLine.length, '');
  }
}

/** The rest of a line, if it has no code: white space, and comments. */
const REST_OF_LINE = /^[\t ]*(?:\/\*(?:[^*\n]|\*(?!\/))*\*\/[\t ]*)*(?:\/\/[^\r\n]*)?(?=\r?\n)/;

/** After the comma, and after what its line says of the parameter before. */
function startOfNext(text: string, comma: number): number {
  const said = REST_OF_LINE.exec(text.slice(comma))?.[0];
  const start = comma + (said?.length ?? 0);
  return start + (/^\s*/.exec(text.slice(start))?.[0].length ?? 0);
}
