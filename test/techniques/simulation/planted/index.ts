import { CLIENTS } from './clients.js';
import { DETACHING } from './detaching.js';
import { DRIVER } from './driver.js';
import { FENCING } from './fencing.js';
import { HOLDING } from './holding.js';
import { JOBS } from './jobs.js';
import { LEADERS } from './leaders.js';
import { LINE } from './line.js';
import { LOGINS } from './logins.js';
import { MODES } from './modes.js';
import { ONCE } from './once.js';
import { PLAIN_CASE } from './plain.js';
import { OPERATORS } from './operators.js';
import type { PlantedBug } from './planted-bug.js';
import { QUORUM } from './quorum.js';
import { REPLACING } from './replacing.js';
import { SERVICE } from './service.js';

export { plant, type PlantedBug } from './planted-bug.js';

/** All of them. */
export const PLANTED: readonly PlantedBug[] = [
  ...FENCING,
  ...HOLDING,
  ...LINE,
  ...PLAIN_CASE,
  ...QUORUM,
  ...MODES,
  ...DETACHING,
  ...LEADERS,
  ...ONCE,
  ...REPLACING,
  ...OPERATORS,
  ...JOBS,
  ...LOGINS,
  ...DRIVER,
  ...CLIENTS,
  ...SERVICE,
];
