/**
 * `node --import ./test/support/register-typescript.mjs script.ts`: runs TypeScript in a child process of a test,
 * compiled as jest compiles it (jest.config.js).
 */
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
