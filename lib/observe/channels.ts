import {
  channel,
  tracingChannel,
  type Channel,
  type TracingChannel,
} from 'node:diagnostics_channel';
import type {
  AcquireContext,
  HoldContext,
  ReleaseContext,
  RenewContext,
  RequestContext,
} from './contexts.js';
import type { CurrentEventName, FormerEventName } from './lock-events.js';

/** A tracing channel whose messages all have one type. */
export type Tracing<Context extends object> = TracingChannel<unknown, Context>;

const tracing = <Context extends object>(name: string): Tracing<Context> =>
  tracingChannel<unknown, Context>(`holdfast:${name}`);

/** A call that asks for a lock, with its wait. */
export const ACQUIRE = tracing<AcquireContext>('acquire');

/** A lock that is held: from its grant to its release or loss. */
export const HOLD = tracing<HoldContext>('hold');

/** A batch of renewals. */
export const RENEW = tracing<RenewContext>('renew');

/** A release that the store is asked for. */
export const RELEASE = tracing<ReleaseContext>('release');

/** One run of a script on one Redis server. */
export const REQUEST = tracing<RequestContext>('request');

/**
 * The publisher of the work under a lock. `runStores` of this channel calls the work each time that it is entered: for
 * each step of an async iterable, for instance. The message is the context of the hold. Bind a store to it to give the
 * work an async context.
 */
export const WORK: Channel<unknown, HoldContext> = channel('holdfast:work') as Channel<
  unknown,
  HoldContext
>;

/** The channel of `handedOff` is `holdfast:handed-off`. */
export const channelNameOf = (event: string): string =>
  `holdfast:${event.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** The channel of each event. They are kept here because Node forgets a channel without references. */
export const EVENTS = {
  waiting: channel(channelNameOf('waiting')),
  acquired: channel(channelNameOf('acquired')),
  refused: channel(channelNameOf('refused')),
  unavailable: channel(channelNameOf('unavailable')),
  renewed: channel(channelNameOf('renewed')),
  jeopardy: channel(channelNameOf('jeopardy')),
  lost: channel(channelNameOf('lost')),
  released: channel(channelNameOf('released')),
  detached: channel(channelNameOf('detached')),
  attached: channel(channelNameOf('attached')),
  handedOff: channel(channelNameOf('handedOff')),
  limitMismatch: channel(channelNameOf('limitMismatch')),
  onceAttempt: channel(channelNameOf('onceAttempt')),
} satisfies Readonly<Record<CurrentEventName, Channel>>;

/** Former names of events and of their channels. The next minor version removes them. */
export const FORMER_EVENTS = {
  handedOn: 'handedOff',
  limitsDiffer: 'limitMismatch',
  once: 'onceAttempt',
} as const satisfies Readonly<Record<FormerEventName, CurrentEventName>>;

/** The former channel of an event, which has its messages, too. */
export const FORMER_CHANNELS: Readonly<Partial<Record<CurrentEventName, Channel>>> = {
  handedOff: channel(channelNameOf('handedOn')),
  limitMismatch: channel(channelNameOf('limitsDiffer')),
  onceAttempt: channel(channelNameOf('once')),
};
