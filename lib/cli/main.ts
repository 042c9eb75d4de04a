#!/usr/bin/env node
import { EXIT } from './exit-codes.js';

// Loaded here, so that an ioredis that is not installed is one line and not a stack.
try {
  const { start } = await import('./start.js');
  await start();
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = EXIT.usage;
}
