import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const project = fileURLToPath(new URL('../../', import.meta.url));

/** What editors show of an option. */
export interface OptionDoc {
  /** The first paragraph of its comment. */
  readonly text: string;
  /** The default, as the comment names it. */
  readonly defaultText: string | undefined;
}

function settings(): ts.CompilerOptions {
  const config = ts.getParsedCommandLineOfConfigFile(`${project}tsconfig.build.json`, undefined, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
      throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
    },
  });
  if (config === undefined) throw new Error('tsconfig.build.json was not read');
  return config.options;
}

/** The library as the compiler sees it. */
export class CompiledLibrary {
  readonly #options = settings();
  readonly #program = ts.createProgram([`${project}lib/index.ts`], this.#options);

  /** The documentation of the properties of a type, by name. */
  docsOf(file: string, type: string): ReadonlyMap<string, OptionDoc> {
    const checker = this.#program.getTypeChecker();
    const source = this.#program.getSourceFile(project + file);
    const symbol = source && checker.getSymbolAtLocation(source);
    const found = checker.getExportsOfModule(symbol as ts.Symbol).find(({ name }) => name === type);
    if (found === undefined) throw new Error(`${file} has no type ${type}`);
    const properties = checker.getDeclaredTypeOfSymbol(found).getProperties();
    return new Map(
      properties.map((property) => [
        property.name,
        docOf(
          ts.displayPartsToString(property.getDocumentationComment(checker)),
          property.getJsDocTags(checker),
        ),
      ]),
    );
  }

  /** What an editor shows of the places of a module that uses the library as it is published: of its declarations. */
  hover(code: string, places: readonly string[]): readonly OptionDoc[] {
    const declarations = new Map<string, string>();
    this.#program.emit(undefined, (name, text) => declarations.set(name, text), undefined, true);
    const file = `${project}test/docs/hovered.ts`;
    const read = (name: string): string | undefined =>
      name === file ? code : (declarations.get(name) ?? ts.sys.readFile(name));
    const fileExists = (name: string): boolean =>
      name === file || declarations.has(name) || ts.sys.fileExists(name);
    const options: ts.CompilerOptions = {
      ...this.#options,
      noEmit: true,
      rootDir: project,
      paths: { 'nestjs-holdfast': [`${project}dist/index.d.ts`] },
    };
    const service = ts.createLanguageService({
      getCompilationSettings: () => options,
      getCurrentDirectory: () => project,
      getDefaultLibFileName: ts.getDefaultLibFilePath,
      getScriptFileNames: () => [file],
      getScriptVersion: () => '1',
      getScriptSnapshot: (name) => {
        const text = read(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      readFile: read,
      fileExists,
      directoryExists: (name) =>
        [...declarations.keys()].some((each) => each.startsWith(`${name}/`)) ||
        ts.sys.directoryExists(name),
    });
    const complaints = service.getSemanticDiagnostics(file);
    if (complaints.length > 0)
      throw new Error(
        complaints
          .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
          .join('\n'),
      );
    return places.map((place) => {
      const info = service.getQuickInfoAtPosition(file, code.indexOf(place));
      return docOf(ts.displayPartsToString(info?.documentation), info?.tags ?? []);
    });
  }
}

function docOf(comment: string, tags: readonly ts.JSDocTagInfo[]): OptionDoc {
  const [paragraph = ''] = comment.split('\n\n');
  const tag = tags.find(({ name }) => name === 'defaultValue');
  return {
    text: paragraph.replaceAll('\n', ' '),
    defaultText: tag === undefined ? undefined : ts.displayPartsToString(tag.text),
  };
}
