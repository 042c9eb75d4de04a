import type { Recorder } from '../observe/recorder.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import type { LockStore } from '../store/lock-store.js';
import type { Scheduler } from '../time/scheduler.js';
import type { SectionTimes } from './section-times.js';

/** What all parts of a lock service stand on. */
export interface Foundation {
  readonly store: LockStore;
  readonly scheduler: Scheduler;
  readonly recorder: Recorder;
  readonly options: ResolvedOptions;
  /** Applies the `errors` option to an error that leaves. */
  readonly present: <E>(error: E) => E;
  /** Missing if no hint is made of them. */
  readonly sectionTimes: SectionTimes | undefined;
}
