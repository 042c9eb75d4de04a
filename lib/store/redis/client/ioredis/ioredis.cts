import type * as Ioredis from 'ioredis';

/**
 * ioredis, which the application installs. CommonJS, as ioredis itself is: an ES module can do nothing about an import that fails.
 */
function load(): typeof Ioredis {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import could not be caught
    return require('ioredis') as typeof Ioredis;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new Error('nestjs-holdfast needs ioredis, which is not installed: npm install ioredis', {
      cause: error,
    });
  }
}

export = load();
