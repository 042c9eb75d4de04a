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

interface SilenceProps {
  readonly of: Instance;
  /** The process did not answer just now. */
  readonly isMute: boolean;
}

/** Whether an instance appears to be frozen, cut off or dead. */
export function Silence({ of, isMute }: SilenceProps) {
  if (of.isSilent) return <Tag bad>silent</Tag>;
  return isMute ? <Tag bad>no answer</Tag> : null;
}

export const whoOf = ({ application, host, pid }: Instance): string =>
  `${application} on ${host}, pid ${pid}`;

/** `OrdersService.pay`, else what is known of a call by hand. */
export const originOf = ({ method, place, template }: Origin): string | undefined =>
  method ?? place ?? template;

export function Tag({ bad, children }: { readonly bad?: boolean; children: ComponentChildren }) {
  return <span class={bad ? 'tag bad' : 'tag'}>{children}</span>;
}

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

/** The ids of those who did not answer just now. */
export const muteIn = ({ hot }: Snapshot): ReadonlySet<string> =>
  new Set(hot?.silent.map(({ id }) => id));

export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;
