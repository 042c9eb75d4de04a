import { error, ok, warning, type Found } from '../finding.js';
import { keyPatterns } from '../names.js';
import { RIGHTS, type Purpose, type Right } from '../rights.js';
import type { Answer, Server } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** What the server refused: the command, the names of keys, or the names of channels. */
type Refusal = 'command' | 'keys' | 'channels' | 'not there';

/** Whether the Redis user may do what the library does: each command is tried. */
export const rights: ServerCheck = {
  name: 'rights',
  async examine(server) {
    const names = server.trials.trialNames();
    if (names === undefined) return [ok('No key with this prefix is at this server.')];
    const refused = new Map<Right, Refusal>();
    // One after the other: the last one removes what the others left.
    for (const right of RIGHTS) {
      const refusal = refusalOf(await server.ask(...right.trial(names)));
      if (refusal !== undefined) refused.set(right, refusal);
    }
    if (refused.size === 0) return [ok('The Redis user may do all that locks and operators need.')];
    const user = await userOf(server);
    const found = (['locks', 'waiting', 'information', 'operators'] as const).flatMap((purpose) => {
      const those = [...refused].filter(([right]) => right.purpose === purpose);
      return those.length === 0 ? [] : [findingOf(purpose, new Map(those), server, user)];
    });
    const others = [...refused.keys()].map(({ purpose }) => purpose);
    if (others.includes('replicas'))
      found.push(
        ok('WAIT is refused: the option "replicas" cannot be used. Other locks do not need it.'),
      );
    return found.length > 0 ? found : [ok('The Redis user may do all that locks need.')];
  },
};

/** Servers report it in other words for keys and channels than for commands. */
function refusalOf(answer: Answer): Refusal | undefined {
  if (answer.status === 'answered' || answer.kind !== 'error') return undefined;
  const { message } = answer;
  if (/unknown (sub)?command/i.test(message)) return 'not there';
  // Errors that the server returns to every user: an error for full memory contains "command not allowed", too.
  if (/^(OOM|READONLY|MISCONF|NOREPLICAS|CLUSTERDOWN|LOADING)\b/.test(message)) return undefined;
  if (!/NOPERM|no permission|not allowed|can't run this command/i.test(message)) return undefined;
  if (/\bchannels?\b/.test(message)) return 'channels';
  return /\bkeys?\b/.test(message) ? 'keys' : 'command';
}

/** The user that is named in the lines to write. */
async function userOf(server: Server): Promise<string> {
  const who = await server.ask('acl', 'whoami');
  return who.status === 'answered' ? String(who.value) : '<user>';
}

const CONSEQUENCES: Readonly<Record<Purpose, string>> = {
  locks: 'Locks are refused (503), all or those that need it.',
  waiting: 'Callers that wait poll every 500 ms instead of being woken.',
  information: 'Version, eviction policy and role are not checked, and "restartGuard" is refused.',
  operators: 'This program and LockAdmin cannot do all that they should. Locks are not affected.',
  names: '',
  replicas: '',
};

function findingOf(
  purpose: Purpose,
  refused: ReadonlyMap<Right, Refusal>,
  server: Server,
  user: string,
): Found {
  const named = (refusal: Refusal): readonly string[] =>
    [...refused].filter(([, each]) => each === refusal).map(([{ name }]) => name);
  const missing = [
    ...(named('keys').length > 0 ? keyPatterns(server.prefix) : []),
    ...(named('channels').length > 0 ? ['&holdfast:*'] : []),
    ...named('command').map((name) => `+${name}`),
  ];
  const absent = named('not there');
  const texts = [
    missing.length > 0 ? `The Redis user lacks ${missing.join(' ')}.` : '',
    absent.length > 0 ? `The server has no ${absent.map(upper).join(', ')}.` : '',
    CONSEQUENCES[purpose],
  ];
  const remedies = [
    missing.length > 0 ? `ACL SETUSER ${user} ${missing.join(' ')}` : '',
    absent.length > 0 ? 'Undo rename-command, or use a server that has these commands.' : '',
  ];
  const say = purpose === 'locks' ? error : warning;
  return say(texts.filter(Boolean).join(' '), remedies.filter(Boolean).join(' '));
}

const upper = (name: string): string => name.replace('|', ' ').toUpperCase();
