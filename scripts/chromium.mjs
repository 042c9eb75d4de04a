/** Finds a Chromium for `npm run test:browser`, and installs one where it can: the browsers of Playwright itself are not needed. */
import { aptGet, executable, onPath } from './programs.mjs';

const NAMES = ['chromium-headless-shell', 'chromium', 'google-chrome', 'chromium-browser'];

/** What a developer can run by hand where the installation is left to them. */
const INSTALL_HINT = `Install one of these, then run the command again:
  Debian:          sudo apt-get update && sudo apt-get install -y --no-install-recommends chromium-headless-shell
  macOS, Windows:  Google Chrome or Chromium
or name the program of an existing installation:
  CHROMIUM_BIN=/path/to/chromium npm run test:browser`;

const APPLICATION_OF_MACOS = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';

/** The path of the program: `$CHROMIUM_BIN`, else what is on the PATH. */
function findChromium() {
  const named = process.env.CHROMIUM_BIN;
  if (named) {
    const found = named.includes('/') ? executable(named) : onPath(named);
    if (found) return found;
    throw new Error(
      `CHROMIUM_BIN is "${named}", which is no program that can be run. Correct it or unset it.`,
    );
  }
  for (const name of NAMES) {
    const found = onPath(name);
    if (found) return found;
  }
  return executable(APPLICATION_OF_MACOS);
}

/** Like `findChromium()`, but installs one where there is none; throws with instructions if it cannot. */
export function ensureChromium(log = console.log) {
  const found = findChromium() ?? install(log);
  if (!found)
    throw new Error(`No Chromium was found, nor could one be installed.\n${INSTALL_HINT}`);
  log(`chromium: using ${found}`);
  return found;
}

function install(log) {
  if (!onPath('apt-get')) return undefined;
  for (const name of ['chromium-headless-shell', 'chromium'])
    if (aptGet(log, 'chromium', name)) return findChromium();
  return undefined;
}
