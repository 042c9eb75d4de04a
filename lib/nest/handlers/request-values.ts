import type { ExecutionContext } from '@nestjs/common';
import type { RequestValues } from '../../key/index.js';

interface Requestish extends RequestValues {
  readonly req?: RequestValues;
  readonly data?: { readonly user?: unknown };
  readonly handshake?: { readonly headers?: unknown; readonly query?: unknown };
}

/** The request of a call, in one shape for every transport. Raw: before pipes. */
export function requestValues(context: ExecutionContext): RequestValues {
  switch (context.getType<string>()) {
    case 'rpc':
      return { body: context.switchToRpc().getData<unknown>() };
    case 'ws': {
      const client = context.switchToWs().getClient<Requestish | undefined>();
      return {
        body: context.switchToWs().getData<unknown>(),
        headers: client?.handshake?.headers,
        query: client?.handshake?.query,
        user: client?.user ?? client?.data?.user,
      };
    }
    case 'graphql': {
      const [, args, graphql] = context.getArgs<[unknown, unknown, Requestish | undefined]>();
      const request = graphql?.req ?? graphql;
      return {
        params: args,
        body: args,
        headers: request?.headers,
        user: request?.user ?? graphql?.user,
      };
    }
    default:
      // Read when asked for: middleware and guards may still set them, on Fastify through getters.
      return context.switchToHttp().getRequest<RequestValues>();
  }
}
