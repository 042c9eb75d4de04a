import { redact } from '../errors/redact.js';
import { shortened, textOf } from '../errors/describe.js';

/** The largest value that is kept, as JSON, in bytes of UTF-8. Redis is no place for large values. */
const LONGEST_VALUE = 4_096;

/** A value as it is kept for other callers, or why it is not kept. */
export function valueAsJson(value: unknown): {
  readonly json?: string | undefined;
  readonly problem?: string;
} {
  let json: unknown;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    return { problem: `it is no JSON (${errorText(error)})` };
  }
  if (typeof json !== 'string') return {}; // `undefined` has no JSON
  const bytes = Buffer.byteLength(json);
  if (bytes <= LONGEST_VALUE) return { json };
  return {
    problem: `as JSON it has ${String(bytes)} bytes, more than ${String(LONGEST_VALUE)}`,
  };
}

/** The value that was kept, if one was. */
export function valueOfJson(json: string | undefined): { readonly value?: unknown } {
  if (json === undefined) return {};
  try {
    return { value: JSON.parse(json) as unknown };
  } catch {
    return {}; // not written by Holdfast
  }
}

/** The message of an error, short and without secrets. */
export const errorText = (error: unknown): string => shortened(redact(textOf(error)));
