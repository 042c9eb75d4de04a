import type { RequestValues } from '../../key/index.js';
import { otherTransport, type Transport } from './transport.js';

/** What the application puts into the context of a query: mostly `{ req }`, or the request itself. */
interface GraphqlContext extends RequestValues {
  readonly req?: RequestValues;
}

/** The server of GraphQL takes thrown errors as they are, and ends subscriptions by unsubscribing. */
export const graphqlTransport: Transport = {
  ...otherTransport,

  streamsMessage: true,

  requestValues: (context) => {
    const [, args, graphql] = context.getArgs<[unknown, unknown, GraphqlContext | undefined]>();
    const request = graphql?.req ?? graphql;
    return {
      params: args,
      body: args,
      headers: request?.headers,
      user: request?.user ?? graphql?.user,
    };
  },
};
