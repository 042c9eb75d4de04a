/** The former names that this process was warned of. */
const warned = new Set<string>();

/** Warns the first time that a process uses a former name. A former name works for one minor version. */
export function warnOfFormerName(former: string, current: string): void {
  if (warned.has(former)) return;
  warned.add(former);
  process.emitWarning(
    `${former} is now called ${current}. The next minor version removes the former name. ` +
      'This command renames it in your code: npx @nestjs-holdfast/cli migrate src',
    { type: 'DeprecationWarning', code: 'HOLDFAST_FORMER_NAME' },
  );
}
