import type { ComponentChildren } from 'preact';
import { hrefOfInstance, hrefOfKey } from './address.js';
import type { Instance, Origin, Snapshot } from './answers.js';
import { exact } from './time.js';

const RUNBOOK = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/operations.md';

/** A section of the runbook. */
export const runbook = (section: string): string => `${RUNBOOK}#${section}`;

/** An application on a host, by its process. */
export function Who({ of }: { readonly of: Instance | undefined }) {
  if (of === undefined) return <span class="quiet">not known</span>;
  return (
    <span class="who">
      <a href={hrefOfInstance(of.id)}>
        {of.application}
        {of.service !== undefined && ` (${of.service})`}
      </a>{' '}
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
export const Unresponsive = () => (
  <a href={runbook('an-instance-is-frozen-or-dead')}>
    <Tag bad>unresponsive</Tag>
  </a>
);

/** What the command line prints, too: what to do about such a process. */
export function NextStep({ of }: { readonly of: Instance }) {
  return (
    <div class="next">
      <p>On {of.host}, look at the first letter of its state:</p>
      <code>ps -o stat=,lstart=,args= -p {of.pid}</code>
      <p>T or D: it is stopped. Kill it, and then release its keys:</p>
      <code>kill -9 {of.pid}</code>
      <p>R or S: it is busy. Leave it: its lease ends by itself, or it replies again.</p>
      <p>Nothing, or Z: it is dead. Release its keys.</p>
      <p class="quiet">
        Instance id {of.id}, started {exact(of.startedAt)}, last seen {exact(of.seenAt)}
      </p>
    </div>
  );
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

/** Whether an instance has not reported for a while, or did not reply just now. */
export const isSilent = ({ unresponsive }: Snapshot, { id }: Instance): boolean =>
  unresponsive.includes(id);

export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;
