#!/usr/bin/env node
import { EXIT } from './exit-codes.js';
import installed from './installed.cjs';

// The rest is loaded when it is known that it can be: an import that fails is a page of text.
if (installed.isInstalled('ioredis')) {
  const { start } = await import('./start.js');
  await start(installed.folder);
} else {
  process.stderr.write(
    'error: nestjs-holdfast needs ioredis, which is not installed: npm install ioredis\n',
  );
  process.exitCode = EXIT.usage;
}
