import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { hrefOfView, show, type Place } from './address.js';

const SHORTCUTS = [
  ['/', 'Search'],
  ['a', 'All keys'],
  ['u', 'Keys of processes that do not reply'],
  ['w', 'Keys that callers wait for'],
  ['n and p', 'Next and previous page'],
  ['?', 'This list'],
  ['Esc', 'Close a dialog'],
] as const;

/** The keys of the keyboard. They do nothing in a field, or with Ctrl and the like. */
export function useShortcuts(place: Place, openHelp: () => void): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select');
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const act = ACTS[event.key];
      if (event.key === '?') openHelp();
      else if (act === undefined) return;
      else act(place);
      event.preventDefault();
    };
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
  });
}

const ACTS: Readonly<Record<string, (place: Place) => void>> = {
  '/': () => document.querySelector<HTMLInputElement>('input[type=search]')?.focus(),
  a: () => location.assign(hrefOfView()),
  u: () => location.assign(hrefOfView({ filter: 'unresponsive' })),
  w: () => location.assign(hrefOfView({ filter: 'waited-for' })),
  n: ({ key, isAudit, ...view }) => turn(key === undefined && !isAudit, view, 1),
  p: ({ key, isAudit, ...view }) => turn(key === undefined && !isAudit, view, -1),
};

function turn(isTable: boolean, view: Omit<Place, 'key' | 'isAudit'>, by: number): void {
  if (isTable) show({ ...view, page: Math.max(1, view.page + by) });
}

export function Help({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="help" onClose={close}>
      <h2 id="help">Keyboard shortcuts</h2>
      <dl>
        {SHORTCUTS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" class="bar end">
        <button>Close</button>
      </form>
    </dialog>
  );
}
