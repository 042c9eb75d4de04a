/** Finds programs that are no packages of npm, and installs them where it can. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of a program on the PATH. */
export function onPath(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const found = folder && executable(join(folder, name));
    if (found) return found;
  }
  return undefined;
}

/** The path, if a program is there. */
export function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? path : undefined;
  } catch {
    return undefined;
  }
}

/** The words to put before a command that needs root; `undefined` where root is out of reach. */
export function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  const sudo = onPath('sudo');
  const passwordless = sudo && spawnSync(sudo, ['-n', 'true'], { stdio: 'ignore' }).status === 0;
  return passwordless ? [sudo, '-n'] : undefined;
}

/** Whether the command was run to a good end, in a folder if one is given. `name` says in the log for what. */
export function run(log, name, [command, ...args], cwd) {
  log(`${name}: ${[command, ...args].join(' ')}`);
  const { status, error } = spawnSync(command, args, {
    cwd,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) return true;
  log(`${name}: that failed (${error ? error.message : `exit code ${status}`})`);
  return false;
}

/** Whether Debian's package was installed. */
export function aptGet(log, name, wanted) {
  const asRoot = rootPrefix();
  if (!asRoot) {
    log(`${name}: apt-get needs root, and sudo asks for a password`);
    return false;
  }
  // `env` hands the variables through sudo, which drops those of its caller. RUNLEVEL=1 keeps invoke-rc.d from starting a service.
  const apt = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'apt-get'];
  run(log, name, [...apt, 'update']); // one unreachable repository of many does not matter: install decides
  return run(log, name, [...apt, 'install', '-y', '--no-install-recommends', wanted]);
}
