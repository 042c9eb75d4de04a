import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { perform, type Deed } from './deed.js';

interface ConfirmProps {
  readonly deed: Deed;
  /** With what was done, or nothing when it was not. */
  readonly close: (said?: string) => void;
}

/** Asks why, and does it. */
export function Confirm({ deed, close }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);

  useLayoutEffect(() => {
    const before = document.activeElement;
    const shown = dialog.current;
    shown?.showModal();
    return () => {
      // Nothing outside of an open dialog can have the focus.
      shown?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy || reason.trim() === '') return;
    setBusy(true);
    try {
      close(await perform(deed, reason.trim()));
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  };

  // The browser says that it has closed a dialog a moment later. A key that is pressed in that moment would be lost.
  const cancel = (event: Event): void => {
    event.preventDefault();
    close();
  };

  /** The browser may close it without asking. Once this one is gone, another dialog may be open. */
  const closed = (): void => {
    if (dialog.current !== null) close();
  };

  return (
    <dialog ref={dialog} aria-labelledby="deed" onCancel={cancel} onClose={closed}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="deed">{deed.title}</h2>
        <p>{deed.effect}</p>
        <label>
          Reason
          <input
            value={reason}
            maxLength={500}
            required
            autocomplete="off"
            placeholder="What you found out"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <p class="quiet">The audit log keeps it, and holders that reply are notified of it.</p>
        {problem !== '' && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        <div class="bar end">
          <button type="button" onClick={() => close()}>
            Cancel
          </button>
          <button class="danger" disabled={isBusy || reason.trim() === ''}>
            {deed.verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}
