import type { Context, LocalContext, RedisCommand, RunWithRedis } from './command.js';
import { audit } from './commands/audit.js';
import { doctor } from './commands/doctor.js';
import { forget } from './commands/forget.js';
import { instances } from './commands/instances.js';
import { list } from './commands/list.js';
import { releaseInstance } from './commands/release-instance.js';
import { release } from './commands/release.js';
import { show } from './commands/show.js';
import { top } from './commands/top.js';
import { watch } from './commands/watch.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import type { Runtime } from './runtime.js';
import { withServers, wrongServerText } from './servers.js';
import { Session } from './session.js';
import { targetOf, type Target } from './target.js';
import { printable } from './text/printable.js';

const RUN: Readonly<Record<RedisCommand['name'], RunWithRedis>> = {
  ...{ list, show, watch, top, instances, audit },
  ...{ release, 'release-instance': releaseInstance, forget, doctor },
};

/** Runs a command that asks a Redis. */
export async function perform(
  name: RedisCommand['name'],
  local: LocalContext & Pick<Context, 'word'>,
): Promise<ExitCode> {
  const { options, terminal, ink, runtime } = local;
  const target = targetOf(options, terminal.env);
  let opened: Session | undefined;
  const session = (): Session => (opened ??= new Session(target));
  const context: Context = { ...local, target, session, admin: () => session().admin };
  try {
    // `doctor` reports it among other things.
    const problem = name === 'doctor' ? undefined : await problemAt(target, runtime);
    if (problem !== undefined) {
      terminal.note(`${ink.red('error:')} ${printable(problem)}\n`);
      return EXIT.unavailable;
    }
    const code = await RUN[name](context);
    for (const warning of opened?.warnings ?? [])
      terminal.note(`${ink.yellow('warning:')} ${printable(warning)}\n`);
    return code;
  } finally {
    await opened?.close();
  }
}

/** Why the servers have no complete view of the locks. A server that does not answer is reported by the command. */
const problemAt = (target: Target, runtime: Runtime): Promise<string | undefined> =>
  withServers(target, runtime, async ({ servers }) => {
    const problems = await Promise.all(servers.map((server) => wrongServerText(server, target)));
    return problems.find((problem) => problem !== undefined);
  });
