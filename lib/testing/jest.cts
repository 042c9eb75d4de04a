import type * as Typescript from 'typescript';

/** What Jest says of the project whose tests it runs. */
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
 * A transformer for Jest, where that cannot load ES modules: it makes CommonJS of this package and needs no `allowJs`. docs/testing-your-app.md
 * has the two lines of configuration.
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
