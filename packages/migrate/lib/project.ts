import type ts from 'typescript';

/** What code with redlock becomes: calls of `LockService`, or the same calls with another import. */
export type RedlockTarget = 'service' | 'drop-in';

/** What all files together tell, and what the user asked for. */
export class Project {
  readonly redlockTo: RedlockTarget;
  readonly #texts: readonly string[];
  /** Prefixes of keys for which a file of this run says how to register `LockModule`. */
  readonly #marked = new Set<string>();

  constructor(texts: readonly string[], redlockTo: RedlockTarget = 'service') {
    this.#texts = texts;
    this.redlockTo = redlockTo;
  }

  /** The files that name one of these packages. */
  textsNaming(packages: readonly string[]): readonly string[] {
    return this.#texts.filter((text) => packages.some((name) => namesPackage(text, name)));
  }

  /** Whether it has to be said that `LockModule` needs this prefix: once is enough. */
  takeModuleMark(keyPrefix: string): boolean {
    // Code with @nestjs-holdfast/redlock has no prefix. A module that is registered with one does not exclude it.
    const isShared = keyPrefix === '';
    const isKnown = this.#texts.some(
      (text) => (!isShared && registersModule(text)) || text.includes(prefixText(keyPrefix)),
    );
    if (isKnown || this.#marked.has(keyPrefix)) return false;
    this.#marked.add(keyPrefix);
    return true;
  }

  /** Whether code names the parameters of this class in their order. Without a name, that is not known. */
  isConstructed({ name }: ts.ClassDeclaration): boolean {
    if (name === undefined) return true;
    const constructed = new RegExp(`\\b(?:new|extends)\\s+${name.text}\\b`);
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
