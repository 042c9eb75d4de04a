import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('clock-shim.c', import.meta.url));

const REMEDY = `The comparison with a real Redis moves the clock of that: it needs Linux and a C compiler.
  Debian, Ubuntu:  sudo apt-get install -y --no-install-recommends gcc libc6-dev
  Alpine:          sudo apk add gcc musl-dev
or name another compiler:
  CC=/path/to/cc npm test -- test/techniques/simulation`;

/** What the clock of a server with the shim shows at its start. */
export const BEGINNING_US = 1_700_000_000_000_000;

/** The compiled `clock-shim.c`. */
export class ClockShim {
  /** What a server has to be started with. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #folder: string;

  /** @throws Error with the remedy where there is no compiler for it */
  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'holdfast-clock-'));
    const library = join(this.#folder, 'clock-shim.so');
    const args = ['-shared', '-fPIC', '-O2', '-o', library, SOURCE];
    const { status, stderr, error } = spawnSync(process.env.CC ?? 'cc', args, { encoding: 'utf8' });
    this.environment = { LD_PRELOAD: library };
    if (status === 0 && process.platform === 'linux') return;
    this.remove();
    throw new Error(`${REMEDY}\n${error?.message ?? stderr}`);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}
