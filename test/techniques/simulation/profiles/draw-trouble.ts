import type { Random } from '../../faults/random.js';
import type { Fault, FaultKind } from '../scenario.js';
import { drawFaults } from './draw-faults.js';
import type { Features } from './features.js';

/** What requests that share a call meet each on its own, what others may send, and data that are exchanged unseen. */
const TROUBLE: readonly FaultKind[] = [
  'foreign-value',
  'foreign-value',
  'key-forbidden',
  'messages-forged',
  'messages-forged',
  'data-restored',
];

/** The same faults, and in some worlds trouble of one or two kinds; half of those have no other fault. */
export function withTrouble(
  drawn: readonly Fault[],
  random: Random,
  features: Features,
): readonly Fault[] {
  if (!random.chance(0.12)) return drawn;
  const kinds = random.sample(TROUBLE, random.pick([1, 1, 2]));
  const trouble = drawFaults(random, { ...features, faults: kinds }, 1);
  const others = random.chance(0.5) ? [] : drawn;
  return [...others, ...trouble].toSorted((one, other) => one.atMs - other.atMs);
}
