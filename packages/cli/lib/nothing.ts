import type { Context } from './command.js';
import { elsewhere, placesElsewhere } from './elsewhere.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { withServers } from './servers.js';
import { isInUse } from './text/description.js';
import { printable } from './text/printable.js';

/** Where no service reports, nothing that is found means little: lines that say where services report. */
export async function nobodyLines(
  { admin, target, runtime }: Context,
  keys: 'no keys' | 'keys',
): Promise<readonly string[]> {
  if ((await admin().instances()).length > 0) return [];
  const { text, remedy } = await withServers(target, runtime, async ({ servers }) =>
    elsewhere(target, servers, await placesElsewhere(servers), keys),
  );
  return remedy === undefined ? [text] : [text, remedy];
}

/** For a command that has found nothing. Returns whether a service reports here. */
export async function noteNobody(
  context: Context,
  keys: 'no keys' | 'keys' = 'keys',
): Promise<boolean> {
  const { terminal, ink } = context;
  const [text, remedy] = await nobodyLines(context, keys);
  if (text === undefined) return true;
  terminal.note(`${ink.yellow(text)}\n${remedy === undefined ? '' : `${remedy}\n`}`);
  return false;
}

/** The exit code of a command that lists. One that has found nothing notes whether a service reports here. */
export async function exitOf(
  context: Context,
  hasFound: boolean,
  keys?: 'no keys' | 'keys',
): Promise<ExitCode> {
  return hasFound || (await noteNobody(context, keys)) ? EXIT.ok : EXIT.nothing;
}

/** For a command that knows nothing of its key, which may have been given with the prefix. */
export async function noteUnknownKey(context: Context): Promise<void> {
  const { admin, word: key, target, terminal, ink } = context;
  const inner = key.startsWith(target.keyPrefix) ? key.slice(target.keyPrefix.length) : '';
  if (inner !== '' && isInUse(await admin().describe(inner)))
    terminal.note(
      `${ink.yellow(`Did you mean ${printable(inner)}?`)} Give the key without the prefix ${printable(target.keyPrefix)}\n`,
    );
  else await noteNobody(context);
}
