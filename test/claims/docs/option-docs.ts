import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const project = fileURLToPath(new URL('../../../', import.meta.url));

/** What editors show of an option. */
export interface OptionDoc {
  /** The first paragraph of its comment. */
  readonly text: string;
  /** The default, as the comment names it. */
  readonly defaultText: string | undefined;
}

/** The files that declare options, as the compiler sees them. */
export class CompiledOptions {
  /** For both services: what they have in common is read once. */
  readonly #registry = ts.createDocumentRegistry();
  readonly #settings = settings();
  readonly #files: readonly string[];
  readonly #service: ts.LanguageService;

  /** @param files relative to the project */
  constructor(files: readonly string[]) {
    this.#files = files.map((file) => project + file);
    this.#service = this.#serviceOf(this.#files, new Map());
  }

  /** The documentation of the properties of a type, by name, without former names. */
  docsOf(file: string, type: string): ReadonlyMap<string, OptionDoc> {
    const program = this.#service.getProgram() as ts.Program;
    const checker = program.getTypeChecker();
    const source = program.getSourceFile(project + file) as ts.SourceFile;
    const module = checker.getSymbolAtLocation(source) as ts.Symbol;
    const found = checker.getExportsOfModule(module).find(({ name }) => name === type);
    if (found === undefined) throw new Error(`${file} has no type ${type}`);
    const properties = checker
      .getDeclaredTypeOfSymbol(found)
      .getProperties()
      .filter((property) => property.getJsDocTags().every(({ name }) => name !== 'deprecated'));
    return new Map(
      properties.map((property) => {
        const comment = ts.displayPartsToString(property.getDocumentationComment(checker));
        return [property.name, docOf(comment, property.getJsDocTags(checker))];
      }),
    );
  }

  /**
   * What an editor shows of some places of a module that uses the library as it is published: of its declarations.
   *
   * @param code a module in the folder of the declarations
   */
  hover(code: string, places: readonly string[]): readonly OptionDoc[] {
    const module = `${project}build/hovered.ts`;
    const files = new Map([[module, code]]);
    for (const file of this.#files) {
      for (const { name, text } of this.#service.getEmitOutput(file, true, true).outputFiles)
        files.set(name, text);
    }
    const service = this.#serviceOf([module], files);
    return places.map((place) => {
      const info = service.getQuickInfoAtPosition(module, code.indexOf(place));
      return docOf(ts.displayPartsToString(info?.documentation), info?.tags ?? []);
    });
  }

  #serviceOf(roots: readonly string[], files: ReadonlyMap<string, string>): ts.LanguageService {
    const read = (name: string): string | undefined => files.get(name) ?? ts.sys.readFile(name);
    const host: ts.LanguageServiceHost = {
      getCompilationSettings: () => this.#settings,
      getCurrentDirectory: () => project,
      getDefaultLibFileName: ts.getDefaultLibFilePath,
      getScriptFileNames: () => [...roots],
      getScriptVersion: () => '1',
      getScriptSnapshot: (name) => {
        const text = read(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      readFile: read,
      fileExists: (name) => files.has(name) || ts.sys.fileExists(name),
      directoryExists: (name) =>
        ts.sys.directoryExists(name) || [...files.keys()].some((file) => file.startsWith(name)),
    };
    return ts.createLanguageService(host, this.#registry);
  }
}

function settings(): ts.CompilerOptions {
  const file = `${project}tsconfig.build.json`;
  const { config } = ts.parseConfigFileTextToJson(file, readFileSync(file, 'utf8'));
  return ts.parseJsonConfigFileContent(config, ts.sys, project).options;
}

function docOf(comment: string, tags: readonly ts.JSDocTagInfo[]): OptionDoc {
  const [paragraph = ''] = comment.split('\n\n');
  const tag = tags.find(({ name }) => name === 'defaultValue');
  return {
    text: paragraph.replaceAll('\n', ' '),
    defaultText: tag === undefined ? undefined : ts.displayPartsToString(tag.text),
  };
}
