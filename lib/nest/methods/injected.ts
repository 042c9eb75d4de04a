/**
 * What Nest injects into objects of decorated classes. It is keyed by a symbol and kept beside the object, so that spreading, comparing or
 * freezing the object changes nothing, and no field of the application's is touched.
 */
export class Injected<T> {
  readonly #symbol: symbol;
  readonly #values = new WeakMap<object, T>();

  constructor(symbol: symbol) {
    this.#symbol = symbol;
  }

  /**
   * Has Nest inject into every instance that it makes of the class, or of one that extends it.
   *
   * @param decorators say what Nest injects
   */
  install(prototype: object, ...decorators: readonly PropertyDecorator[]): void {
    if (Object.hasOwn(prototype, this.#symbol)) return;
    const values = this.#values;
    Object.defineProperty(prototype, this.#symbol, {
      configurable: true,
      set(this: object, value: T) {
        values.set(this, value);
      },
    });
    for (const decorate of decorators) decorate(prototype, this.#symbol);
  }

  get(instance: unknown): T | undefined {
    return this.#values.get(instance as object);
  }

  set(instance: object, value: T): void {
    this.#values.set(instance, value);
  }
}
