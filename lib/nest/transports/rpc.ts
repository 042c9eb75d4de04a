import { throwError } from 'rxjs';
import { rpcException } from './faults.js';
import { otherTransport } from './other.js';
import type { Transport } from './transport.js';

/** Microservices; those over gRPC have a file of their own. */
export const rpcTransport: Transport = {
  ...otherTransport,

  requestValues: (context) => ({ body: context.switchToRpc().getData<unknown>() }),

  failureOf: (error) => rpcException(error, error.reply),

  // A microservice sends what its filter's stream fails with.
  respond: (error) => throwError(() => error.reply),
};
