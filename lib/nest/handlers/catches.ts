import 'reflect-metadata';
import type { ExceptionFilter, Type } from '@nestjs/common';

/** Where `@Catch` notes the classes of a filter. */
const CATCHES = '__filterCatchExceptions__';

/** Whether Nest would ask the filter about the error. */
export function catches(filter: ExceptionFilter, error: unknown): boolean {
  const classes = (Reflect.getMetadata(CATCHES, filter.constructor) ?? []) as readonly Type[];
  return classes.length === 0 || classes.some((each) => error instanceof each);
}
