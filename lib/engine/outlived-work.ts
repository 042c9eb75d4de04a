import type { CallSite } from '../lease/call-site.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { Section } from '../sections/section.js';

/**
 * Finds work that continues after its section, because a promise in it was not awaited. Such work is known by the calls
 * that it makes.
 */
export class OutlivedWork {
  readonly #warn: (message: string) => void;

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  asksFor(keys: string | readonly string[], site: CallSite | undefined): void {
    const section = Section.outlived();
    if (section !== undefined)
      this.#report(section, `asked for the lock of ${quoteKeys([keys].flat())}`, site);
  }

  asksForCurrent(siteOf: () => CallSite | undefined): void {
    const section = Section.outlived();
    if (section !== undefined) this.#report(section, 'called current()', siteOf());
  }

  /** @param did what the calling code has done */
  #report(section: Section, did: string, site: CallSite | undefined): void {
    const place = site?.place;
    const where = place === undefined ? '' : `, at ${place}`;
    this.#warn(
      `Work under the lock of ${quoteKeys(section.lock.keys)} continues after its section has ended, without that lock: it has ${did}${where}. ` +
        'Await or return this work in the function that run() or the decorator belongs to.',
    );
  }
}
