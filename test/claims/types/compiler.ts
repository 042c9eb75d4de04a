import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const project = fileURLToPath(new URL('../../../', import.meta.url));

/** The settings of the project, with these on top. */
export function compilerOptions(overrides: ts.CompilerOptions = {}): ts.CompilerOptions {
  const config = ts.getParsedCommandLineOfConfigFile(`${project}tsconfig.json`, overrides, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
      throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
    },
  });
  if (config === undefined) throw new Error('tsconfig.json was not read');
  return config.options;
}

/** Those of packages, for all programs: to read them takes longer than to check a test. Parser and binder go by `alwaysStrict`, which stays. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** Has these files beside, or in place of, those on the disk. */
export function compilerHost(
  options: ts.CompilerOptions,
  sources: ReadonlyMap<string, string>,
): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const getSourceFile = host.getSourceFile.bind(host);
  const { fileExists, readFile } = ts.sys;
  host.fileExists = (file) => sources.has(file) || fileExists(file);
  host.readFile = (file) => sources.get(file) ?? readFile(file);
  host.getSourceFile = (file, ...rest) => {
    if (!file.includes('/node_modules/')) return getSourceFile(file, ...rest);
    if (!parsed.has(file)) parsed.set(file, getSourceFile(file, ...rest));
    return parsed.get(file);
  };
  return host;
}
