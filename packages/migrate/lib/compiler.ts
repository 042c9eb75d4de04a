import { createRequire } from 'node:module';
import { join } from 'node:path';
import type ts from 'typescript';

/** The compiler of the application, as far as it is used here. */
export type Compiler = typeof ts;

/** There is no compiler that this program can use; the message says what to do. */
export class NoCompilerError extends Error {
  override readonly name = 'NoCompilerError';
}

/**
 * Loads `typescript` from the first of these folders that finds one with an API. TypeScript 7 has none that is stable.
 *
 * @throws NoCompilerError
 */
export function loadCompiler(folders: readonly string[]): Compiler {
  let version: string | undefined;
  for (const folder of folders) {
    const found = compilerFrom(folder);
    if (found?.createProgram !== undefined) return found as Compiler;
    version ??= found?.version;
  }
  throw new NoCompilerError(
    version === undefined
      ? 'The command "migrate" reads your code with typescript, which is not installed here: npm install --save-dev typescript@6.'
      : `The command "migrate" needs the API of the compiler, which TypeScript ${version} does not have. Run it with an older one: npx -p typescript@6 -p @nestjs-holdfast/cli nestjs-holdfast migrate.`,
  );
}

function compilerFrom(folder: string): Partial<Compiler> | undefined {
  const load = createRequire(join(folder, 'package.json'));
  try {
    return load('typescript') as Partial<Compiler>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
