import type { Terminal } from './terminal.js';

/** What the user types to start this program: npx runs it without installing it. */
export const programIn = ({ npm_command }: Terminal['env']): string =>
  npm_command === 'exec' ? 'npx @nestjs-holdfast/cli' : 'nestjs-holdfast';
