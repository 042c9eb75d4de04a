import type { RequestValues } from '../../key/index.js';
import type { Transport } from './transport.js';

/** A transport that we know nothing of: errors stay as they are, and the result is the end of a call. */
export const otherTransport: Transport = {
  requestValues: (context) => context.getArgByIndex<RequestValues>(0),
  streamsMessage: false,
  announce: () => undefined,
  failureOf: (error) => error,
  respond: (error) => {
    throw error;
  },
  responseEnd: () => undefined,
  keepMessages: () => undefined,
  watchClient: () => () => undefined,
  // Streams may never end by themselves: the lock would be held indefinitely.
  endsUnsubscribed: () => true,
};
