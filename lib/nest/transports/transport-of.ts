import type { ArgumentsHost } from '@nestjs/common';
import { graphqlTransport } from './graphql.js';
import { grpcTransport, isGrpc } from './grpc.js';
import { httpTransport } from './http.js';
import { rpcTransport } from './rpc.js';
import { otherTransport, type Transport } from './transport.js';
import { wsTransport } from './ws.js';

const TRANSPORTS: ReadonlyMap<string, Transport> = new Map([
  ['http', httpTransport],
  ['rpc', rpcTransport],
  ['ws', wsTransport],
  ['graphql', graphqlTransport],
]);

/** The transport of a call. */
export function transportOf(host: ArgumentsHost): Transport {
  const transport = TRANSPORTS.get(host.getType<string>()) ?? otherTransport;
  return transport === rpcTransport && isGrpc(host) ? grpcTransport : transport;
}
