import { repeatedWork } from '../../faults/once-work.js';
import type { Facts } from './facts.js';

/** Work that is to be done once: marked by one attempt, and not tried again after that. */
export const onceViolations = ({ events, done }: Facts): readonly string[] =>
  // "If Redis loses its data, it forgets what was done."
  done.some(({ fault }) => forgetsWork(fault)) ? [] : repeatedWork(events);

const forgetsWork = (fault: Facts['done'][number]['fault']): boolean =>
  fault.kind === 'server-flushed' ||
  fault.kind === 'fail-over' ||
  fault.kind === 'data-restored' ||
  fault.kind === 'server-clock-set' ||
  (fault.kind === 'server-restarted' && fault.data !== 'kept');
