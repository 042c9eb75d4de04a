import type { ExecutionContext } from '@nestjs/common';
import { isObservable, Observable, ReplaySubject, Subject } from 'rxjs';
import { systemRuntime } from '../../time/runtime.js';

/** As Nest gives it to handlers: with what makes it pass on the messages that came before. */
type Messages = Observable<unknown> & { readonly drainBuffer?: () => void };

/** The streams that handlers get. */
const kept = new WeakSet<object>();

/**
 * Replaces the stream of a client in the arguments of its call by one that keeps the messages until the first subscriber.
 *
 * Nest passes them on as soon as the handler has returned its Observable, and the method has not been called by then if
 * the call still asks for its lock. Nest 11 also forgets them if the stream ends before.
 */
export function keepMessages(context: ExecutionContext): void {
  const args = context.getArgs<[unknown]>();
  const [source] = args;
  // An interceptor may call again (`retry()`).
  if (!isObservable(source) || kept.has(source)) return;
  args[0] = keep(source);
  kept.add(args[0] as object);
}

function keep(source: Messages): Observable<unknown> {
  const [past, messages] = [new ReplaySubject<unknown>(), new Subject<unknown>()];
  source.drainBuffer?.();
  const keeping = source.subscribe(past);
  const passOn = (): void => {
    keeping.unsubscribe();
    past.subscribe(messages).unsubscribe();
    source.subscribe(messages);
  };
  let isHeard = false;
  return new Observable((subscriber) => {
    // As Nest does it: all that the method has subscribed by then get the messages.
    if (!isHeard) systemRuntime.afterInput(passOn);
    isHeard = true;
    return messages.subscribe(subscriber);
  });
}
