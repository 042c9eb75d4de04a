const PRIME = 0x01000193;

/** Tells two runs apart that differ anywhere: FNV-1a twice, with different beginnings. */
export class Digest {
  #one = 0x811c9dc5;
  #other = 0x1b873593;

  addNumber(value: number): void {
    // Whole numbers of µs are larger than 32 bits.
    this.#mix(value | 0);
    this.#mix(Math.floor(value / 2 ** 32) | 0);
  }

  addText(text: string): void {
    for (let index = 0; index < text.length; index += 1) this.#mix(text.charCodeAt(index));
    this.#mix(-1);
  }

  get text(): string {
    return [this.#one, this.#other].map((half) => half.toString(16).padStart(8, '0')).join('');
  }

  #mix(bits: number): void {
    this.#one = Math.imul(this.#one ^ bits, PRIME) >>> 0;
    this.#other = Math.imul(this.#other ^ (bits + 0x9e37), PRIME) >>> 0;
    this.#other = (this.#other ^ (this.#other >>> 15)) >>> 0;
  }
}
