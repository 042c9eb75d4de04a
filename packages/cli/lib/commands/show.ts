import type { RunWithRedis } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { noteUnknownKey } from '../nothing.js';
import { descriptionLines, isInUse } from '../text/description.js';
import { toJson } from '../text/printable.js';

/** Everything that is known of one key. */
export const show: RunWithRedis = async (context) => {
  const { admin, word: key, options, terminal, ink, target } = context;
  const lock = await admin().describe(key);
  const code = isInUse(lock) ? EXIT.ok : EXIT.nothing;
  if (options.json === true) terminal.write(`${toJson(lock)}\n`);
  else {
    terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
    terminal.write(`${descriptionLines(lock, context).join('\n')}\n`);
  }
  if (code === EXIT.nothing) await noteUnknownKey(context);
  return code;
};
