import 'reflect-metadata';

/** Where Nest notes the filters and the interceptors of a class. */
type Enhancers = '__exceptionFilters__' | '__interceptors__';

/**
 * Puts one before those that `@UseFilters` or `@UseInterceptors` named, once: the first interceptor sees errors last, and the first filter
 * is asked last. For before Nest connects the class.
 */
export function enhance(type: object, kind: Enhancers, enhancer: object): void {
  const present = (Reflect.getMetadata(kind, type) ?? []) as readonly object[];
  if (!present.includes(enhancer)) Reflect.defineMetadata(kind, [enhancer, ...present], type);
}
