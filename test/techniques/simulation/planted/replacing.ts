import type { PlantedBug } from './planted-bug.js';

const NEWEST =
  'An older call never gets the key after a newer one: it fails, and its work does not run.';
const WORK =
  'The newer call has the key when the work of the holder has ended, or `replaceWait` after the `signal` has aborted.';

/** Calls that replace the holder. */
export const REPLACING: readonly PlantedBug[] = (
  [
    {
      name: 'older-call-wins',
      file: 'lib/engine/replacing.ts',
      find: 'if ((found?.newest ?? number) === number) return found;',
      replace: 'if ((found?.newest ?? number) >= number) return found;',
      explanation: 'A call does not see that a newer one came, and replaces it.',
      breaks: NEWEST,
    },
    {
      name: 'grant-of-an-older-call-kept',
      file: 'lib/engine/replacing.ts',
      find: '          await lookAtIt();\n',
      replace: '',
      explanation: 'A call that has the key does not look whether a newer one came meanwhile.',
      breaks: NEWEST,
    },
    {
      name: 'holder-not-replaced',
      file: 'lib/engine/replacing.ts',
      find: 'const targets = ourHoldersOf(found).map((holder) => ({ key, holder }));',
      replace: 'const targets = ourHoldersOf(undefined).map((holder) => ({ key, holder }));',
      explanation: 'The holder is not notified, and keeps the key until its work has ended.',
      breaks: WORK,
    },
    {
      name: 'replaced-work-not-awaited',
      file: 'lib/lease/lease-keeper.ts',
      find: 'within(runtime, leftMs, done)',
      replace: 'within(runtime, 0, done)',
      explanation: 'The key is taken as soon as the holder is notified, while its work goes on.',
      breaks: WORK,
    },
    {
      name: 'end-of-replaced-work-not-seen',
      file: 'lib/lease/lease-keeper.ts',
      find: '    lease.onDone?.();\n    lease.releasing',
      replace: '    lease.releasing',
      explanation: 'The newer call waits for all of `replaceWait`, although the work has ended.',
      breaks: WORK,
    },
  ] as const
).map((bug) => ({ ...bug, profile: 'replace' }));
