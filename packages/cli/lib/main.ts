#!/usr/bin/env node
import { createRequire } from 'node:module';
import { EXIT } from './exit-codes.js';

/** What npm installs by itself, and other package managers leave to the user. */
const PEERS = ['nestjs-holdfast', 'ioredis'];

const { resolve } = createRequire(import.meta.url);

function isInstalled(name: string): boolean {
  try {
    resolve(name);
    return true;
  } catch {
    return false;
  }
}

// The rest is loaded when it is known that it can be: an import that fails is a page of text.
const missing = PEERS.find((name) => !isInstalled(name));
if (missing === undefined) {
  const { start } = await import('./start.js');
  await start();
} else {
  process.stderr.write(
    `error: @nestjs-holdfast/cli needs ${missing}, which is not installed: npm install ${missing}\n`,
  );
  process.exitCode = EXIT.usage;
}
