import { LEAD, LEAD_ELSEWHERE } from '../../leader/lead-options.js';
import type { OptionsOf } from '../../options/schema.js';
import type { Kind } from '../../options/unknown-option.js';
import { SERVICE } from '../methods/method-options.js';

const LEADER_METHOD = { ...LEAD, ...SERVICE };

/** Options of `@Leader`. Options that are left out come from the module's options. */
export interface LeaderMethodOptions extends OptionsOf<typeof LEAD>, OptionsOf<typeof SERVICE> {}

export const LEADER_KIND: Kind<typeof LEADER_METHOD> = {
  called: '@Leader',
  options: LEADER_METHOD,
  elsewhere: {
    ...LEAD_ELSEWHERE,
    onElected: 'The method is what is called.',
    onLost: 'The signal of the lead aborts: lead.signal.addEventListener("abort", …).',
  },
};
