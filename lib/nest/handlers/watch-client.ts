import type { ServerResponse } from 'node:http';
import { HttpException, type ExecutionContext } from '@nestjs/common';

/** Nobody reads the answer; but Nest logs errors that are no `HttpException`. */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Calls `gone` when the client of an HTTP call goes away before its response is finished, also if it has done so already: Nest does
 * not tell handlers that return promises.
 *
 * @returns what stops watching
 */
export function watchClient(context: ExecutionContext, gone: (reason: Error) => void): () => void {
  if (context.getType<string>() !== 'http') return () => undefined;
  const response = context
    .switchToHttp()
    .getResponse<ServerResponse & { readonly raw?: ServerResponse }>();
  // Express' response is Node's own, Fastify has it as `raw`.
  const raw = response.raw ?? response;
  const onClose = (): void => {
    if (raw.writableFinished) return;
    gone(new HttpException('The client went away while it waited.', CLIENT_CLOSED_REQUEST));
  };
  if (raw.destroyed) onClose();
  else raw.once('close', onClose);
  return () => {
    raw.off('close', onClose);
  };
}
