import { throwError } from 'rxjs';
import { convert } from './faults.js';
import { otherTransport } from './other.js';
import type { Transport } from './transport.js';

/** Microservices. */
export const rpcTransport: Transport = {
  ...otherTransport,

  requestValues: (context) => ({ body: context.switchToRpc().getData<unknown>() }),

  failureOf: (error) =>
    convert(error, async () => (await import('@nestjs/microservices')).RpcException),

  // A microservice sends what its filter's stream fails with.
  respond: (error) => throwError(() => error.reply),
};
