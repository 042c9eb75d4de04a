import type { ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { StreamableFile, type ExecutionContext } from '@nestjs/common';

/**
 * The end of the response, where the handler's work ends with it and not with its result: it answered with a stream, or it took the
 * response into its own hands (`@Res()`) and has not ended it yet. `undefined` where the result was the end.
 */
export function responseEnd(
  context: ExecutionContext,
  value: unknown,
  args: readonly unknown[],
): Promise<void> | undefined {
  if (context.getType<string>() !== 'http') return undefined;
  const response = context
    .switchToHttp()
    .getResponse<ServerResponse & { readonly raw?: ServerResponse }>();
  const raw = response.raw ?? response;
  const tookOver = value === undefined && args.some((arg) => arg === response || arg === raw);
  if ((!tookOver && !isStream(value)) || raw.writableEnded) return undefined;
  return new Promise((resolve) => {
    finished(raw, { readable: false }, () => {
      resolve();
    });
  });
}

function isStream(value: unknown): boolean {
  if (value instanceof StreamableFile) return true;
  if (typeof value !== 'object' || value === null) return false;
  return Symbol.asyncIterator in value || typeof (value as { pipe?: unknown }).pipe === 'function';
}
