import type { ComponentChildren } from 'preact';
import { hrefOfKey } from './address.js';
import type { Instance, Origin, Snapshot } from './answers.js';

/** An application on a host, by its process. */
export function Who({ of }: { readonly of: Instance | undefined }) {
  if (of === undefined) return <span class="quiet">not known</span>;
  return (
    <span class="who">
      {of.application}
      {of.service !== undefined && ` (${of.service})`}{' '}
      <span class="quiet">
        {of.host} · pid {of.pid}
      </span>
    </span>
  );
}

export const whoOf = ({ application, host, pid }: Instance): string =>
  `${application} on ${host}, pid ${pid}`;

/** `OrdersService.pay`, else what is known of a call by hand. */
export const originOf = ({ method, place, template }: Origin): string | undefined =>
  method ?? place ?? template;

export function Tag({ bad, children }: { readonly bad?: boolean; children: ComponentChildren }) {
  return <span class={bad ? 'tag bad' : 'tag'}>{children}</span>;
}

/** Beside a process that appears to be frozen, cut off or dead. */
export const Unresponsive = () => <Tag bad>unresponsive</Tag>;

export const KeyLink = ({ of }: { readonly of: string }) => (
  <a class="key" href={hrefOfKey(of)} title={of}>
    {of}
  </a>
);

interface PanelProps {
  readonly id: string;
  readonly title: string;
  readonly note?: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Panel({ id, title, note, actions, children }: PanelProps) {
  return (
    <section aria-labelledby={id}>
      <div class="bar">
        <h3 id={id}>
          {title} {note !== undefined && <small>{note}</small>}
        </h3>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** The ids of the instances that have not reported for a while, or did not reply just now. */
export const unresponsiveIn = ({ instances = [], hot }: Snapshot): ReadonlySet<string> =>
  new Set(
    [...instances.filter((each) => each.isUnresponsive), ...(hot?.unresponsive ?? [])].map(
      ({ id }) => id,
    ),
  );

export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;
