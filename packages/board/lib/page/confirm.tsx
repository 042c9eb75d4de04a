import { useEffect, useRef, useState } from 'preact/hooks';
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

  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
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

  return (
    <dialog ref={dialog} aria-labelledby="deed" onClose={() => close()}>
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
        <p class="quiet">Holders are notified, and the audit log keeps it.</p>
        {problem !== '' && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        <div class="bar end">
          <button type="button" onClick={() => dialog.current?.close()}>
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
