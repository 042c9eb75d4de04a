import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compiledFile } from '../../../support/compiled.js';
import { RedisServer } from '../../../support/redis-server.js';

/** Packages that Nest loads if they are there. */
const OF_NEST =
  /^(@nestjs\/(microservices|websockets)(\/.*)?|@fastify\/.*|class-(transformer|validator)(\/.*)?|cli-color)$/;

describe('an application in one minified file, far from every package', () => {
  let redis: RedisServer;
  let folder: string;
  let warnings: string[];

  beforeAll(async () => {
    redis = await RedisServer.start();
    folder = await mkdtemp(join(tmpdir(), 'holdfast-bundle-'));
    warnings = await bundle(folder);
  }, 120_000);
  afterAll(async () => {
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const run = async (...args: string[]): Promise<string[]> => {
    const bundled = [join(folder, 'bundle.cjs'), redis.url, ...args];
    const { stdout } = await promisify(execFile)(process.execPath, bundled, { cwd: folder });
    return stdout.trim().split('\n');
  };

  it('is built without a warning about this package', () => {
    expect(warnings.filter((text) => text.includes('holdfast'))).toEqual([]);
  });

  it('locks by position and by request, and answers 409', async () => {
    expect(await run()).toEqual(['paid 7', '409', '200']);
  });

  it('tells a refusal of the server from a connection that broke', async () => {
    await redis.command('rpush', 'lock:order:foreign', 'of other software');
    expect((await run('foreign')).at(-1)).toMatch(/"kind":"error","message":".*WRONGTYPE/);
  });

  it('does not start with a name that the minifier has changed, and says what to write', async () => {
    expect((await run('parameter')).join()).toMatch(
      /^LockConfigurationError: .* has no parameter "orderNumber" .* minifiers can rename .* a position/,
    );
  });

  it('does not start with a fire time that it cannot read', async () => {
    expect((await run('fire-time')).join()).toMatch(
      /^LockConfigurationError: <fireTime> needs the package "cron" .* could not be loaded/,
    );
  });
});

async function bundle(folder: string): Promise<string[]> {
  const { default: webpack } = await import('webpack');
  const compiler = webpack({
    mode: 'production',
    target: 'node20',
    entry: compiledFile(new URL('./application.ts', import.meta.url)),
    output: { path: folder, filename: 'bundle.cjs', chunkFormat: false },
    plugins: [new webpack.IgnorePlugin({ resourceRegExp: OF_NEST })],
  });
  if (compiler === null) throw new Error('There is no compiler.');
  const stats = await promisify(compiler.run.bind(compiler))();
  await promisify(compiler.close.bind(compiler))();
  const { errors = [], warnings = [] } =
    stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  return warnings.map(({ message, moduleName }) => `${moduleName ?? ''}: ${message}`);
}
