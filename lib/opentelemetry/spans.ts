import {
  context,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';
import { ACQUIRE, HOLD, WORK } from '../observe/channels.js';
import type { AcquireContext, HoldContext, LockSubject } from '../observe/contexts.js';
import { watch } from '../observe/feed.js';
import { modeOf } from '../observe/metrics.js';

/** What `runStores` of a channel makes the active context: OpenTelemetry does not give away the store that it has it in. */
class ActiveContext extends AsyncLocalStorage<Context> {
  override run<R, Args extends unknown[]>(
    store: Context,
    callback: (...args: Args) => R,
    ...args: Args
  ): R {
    return context.with(store, () => callback(...args));
  }
}

/** Refusals and the like are answers; these are faults. */
const FAULTS: readonly AcquireContext['outcome'][] = ['unavailable', 'deadlock', 'failed'];

/** Makes spans of calls and holds. Returns what stops it. */
export function traceLocks(tracer: Tracer, withKeys: boolean): () => void {
  const spans = new WeakMap<object, Span>();
  const active = new ActiveContext();

  const start = (verb: string, subject: LockSubject, links: readonly Span[] = []): Span => {
    const label = subject.template ?? subject.method;
    const span = tracer.startSpan(label === undefined ? verb : `${verb} ${label}`, {
      kind: SpanKind.INTERNAL,
      attributes: attributesOf(subject, withKeys),
      links: links.map((linked) => ({ context: linked.spanContext() })),
    });
    spans.set(subject, span);
    return span;
  };
  const end = (
    subject: AcquireContext | HoldContext,
    { isFault, more }: { readonly isFault: boolean; readonly more: Attributes },
  ): void => {
    const span = spans.get(subject);
    if (span === undefined) return;
    const { error, outcome, fencingToken } = subject;
    span.setAttributes({ 'holdfast.outcome': outcome, ...more });
    if (withKeys) span.setAttributes({ 'holdfast.fencing_token': fencingToken });
    if (error !== undefined) {
      span.setAttribute('error.type', typeOf(error));
      if (isFault) {
        span.recordException(error instanceof Error ? error : inspect(error));
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
    }
    span.end();
  };

  // A store is asked for its value before the subscribers of `start` are called.
  ACQUIRE.start.bindStore(active, (call) =>
    trace.setSpan(context.active(), start('acquire', call)),
  );
  WORK.bindStore(active, (hold) => {
    const span = spans.get(hold);
    return span === undefined ? context.active() : trace.setSpan(context.active(), span);
  });
  const stops = [
    watch(ACQUIRE, {
      asyncEnd: (call) => {
        const { nested, outcome } = call;
        end(call, { isFault: FAULTS.includes(outcome), more: { 'holdfast.nested': nested } });
      },
    }),
    watch(HOLD, {
      start: (hold) => {
        const before = hold.follows && spans.get(hold.follows);
        start('run', hold, before && [before]);
      },
      asyncEnd: (hold) => {
        // A refusal of another lock that ended the work is one of that lock's call.
        const isFault = typeOf(hold.error) !== 'LOCK_NOT_ACQUIRED';
        end(hold, { isFault, more: { 'holdfast.reason': hold.reason } });
      },
    }),
  ];
  return () => {
    ACQUIRE.start.unbindStore(active);
    WORK.unbindStore(active);
    for (const stop of stops) stop();
  };
}

const attributesOf = (subject: LockSubject, withKeys: boolean): Attributes => ({
  'holdfast.mode': modeOf(subject),
  'holdfast.service': subject.service,
  'holdfast.key.template': subject.template,
  'holdfast.method': subject.method,
  'holdfast.keys': withKeys ? [...subject.keys] : undefined,
});

/** The code of a lock error; else the name of the class. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : error.constructor.name;
}
