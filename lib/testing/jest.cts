import type * as Typescript from 'typescript';

/** The part of Jest's configuration of the tested project that is used. */
interface TransformOptions {
  readonly config: { readonly rootDir: string };
}

/** The compiler of the application, which `ts-jest` uses too. */
function compilerOf(rootDir: string): typeof Typescript {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- Jest asks for the code at once
    return require(require.resolve('typescript', { paths: [rootDir] })) as typeof Typescript;
  } catch (error) {
    throw new Error('nestjs-holdfast/jest needs TypeScript: npm install --save-dev typescript', {
      cause: error,
    });
  }
}

/**
 * A transformer for a Jest that cannot load ES modules: it compiles this package to CommonJS and needs no `allowJs`.
 * Its configuration: https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/recipes.md#my-application-is-commonjs
 */
function process(source: string, file: string, { config }: TransformOptions): { code: string } {
  const ts = compilerOf(config.rootDir);
  const { outputText } = ts.transpileModule(source, {
    fileName: file,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.CommonJS,
      esModuleInterop: true,
    },
  });
  return { code: outputText };
}

export = { process };
