import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('clock-shim.c', import.meta.url));

const REMEDY = `The comparison with a real Redis needs its clock in its hands: Linux, and a C compiler.
  Debian, Ubuntu:  sudo apt-get install -y --no-install-recommends gcc libc6-dev
  Alpine:          sudo apk add gcc musl-dev
or name another compiler:
  CC=/path/to/cc npm test -- test/simulation`;

/** A clock for real servers, which shows what it is set to. */
export class VirtualClock {
  /** What a server has to be started with. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #file: number;
  readonly #bytes = Buffer.alloc(8);

  /** @throws Error with the remedy where there is no compiler for it */
  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'holdfast-clock-'));
    const library = join(this.#folder, 'clock-shim.so');
    const [file, compiler] = [join(this.#folder, 'clock'), process.env.CC ?? 'cc'];
    const args = ['-shared', '-fPIC', '-O2', '-o', library, SOURCE];
    const { status, stderr, error } = spawnSync(compiler, args, { encoding: 'utf8' });
    if (status !== 0 || process.platform !== 'linux') {
      rmSync(this.#folder, { recursive: true });
      throw new Error(`${REMEDY}\n${error?.message ?? stderr}`);
    }
    this.#file = openSync(file, 'w+');
    this.set(0);
    this.environment = { LD_PRELOAD: library, HOLDFAST_CLOCK_FILE: file };
  }

  set(nowUs: number): void {
    this.#bytes.writeBigInt64LE(BigInt(nowUs));
    writeSync(this.#file, this.#bytes, 0, 8, 0);
  }

  close(): void {
    closeSync(this.#file);
    rmSync(this.#folder, { recursive: true });
  }
}
