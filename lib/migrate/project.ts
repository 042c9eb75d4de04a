/** What all files together tell. */
export class Project {
  readonly #texts: readonly string[];
  /** Prefixes of keys for which a file of this run says how to register `LockModule`. */
  readonly #marked = new Set<string>();

  constructor(texts: readonly string[]) {
    this.#texts = texts;
  }

  /** Whether it has to be said that `LockModule` needs this prefix: once is enough. */
  takeModuleMark(keyPrefix: string): boolean {
    const isKnown = this.#texts.some(
      (text) => registersModule(text) || text.includes(prefixText(keyPrefix)),
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

/** As it is written in the options of `LockModule`. */
export const prefixText = (keyPrefix: string): string => `keyPrefix: '${keyPrefix}'`;

const registersModule = (text: string): boolean =>
  text.includes('nestjs-holdfast') &&
  /\b(?:Redis)?LockModule\s*\.\s*forRoot(?:Async)?\s*\(/.test(text.replace(/^\s*\/\/.*$/gm, ''));
