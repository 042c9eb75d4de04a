/** What all files together tell. */
export class Project {
  readonly #texts: readonly string[];
  /** Prefixes of keys for which a file of this run says how to register `LockModule`. */
  readonly #marked = new Set<string>();

  /** What code with redlock is moved to. */
  readonly redlockTo: 'service' | 'drop-in';

  constructor(texts: readonly string[], redlockTo: 'service' | 'drop-in' = 'service') {
    this.#texts = texts;
    this.redlockTo = redlockTo;
  }

  /** The files that name one of these packages. */
  textsNaming(packages: readonly string[]): readonly string[] {
    return this.#texts.filter((text) => packages.some((name) => namesPackage(text, name)));
  }

  /** Whether it has to be said that `LockModule` needs this prefix: once is enough. */
  takeModuleMark(keyPrefix: string): boolean {
    // What stays with nestjs-holdfast/redlock has no prefix: a module with another one would not exclude it.
    const isShared = keyPrefix === '';
    const isKnown = this.#texts.some(
      (text) => (!isShared && registersModule(text)) || text.includes(prefixText(keyPrefix)),
    );
    if (isKnown || this.#marked.has(keyPrefix)) return false;
    this.#marked.add(keyPrefix);
    return true;
  }

  /** Whether code names the parameters of this class in their order. */
  isConstructed(className: string): boolean {
    const constructed = new RegExp(`\\b(?:new|extends)\\s+${className}\\b`);
    return this.#texts.some((text) => constructed.test(text));
  }
}

/** Whether a text names a package, in quotes. */
export const namesPackage = (text: string, name: string): boolean =>
  ["'", '"', '`'].some((quote) => text.includes(`${quote}${name}${quote}`));

/** As it is written in the options of `LockModule`. */
export const prefixText = (keyPrefix: string): string => `keyPrefix: '${keyPrefix}'`;

const registersModule = (text: string): boolean =>
  text.includes('nestjs-holdfast') &&
  /\b(?:Redis)?LockModule\s*\.\s*forRoot(?:Async)?\s*\(/.test(text.replace(/^\s*\/\/.*$/gm, ''));
