import { withoutEnd } from './connection-end.js';

/** `unknown`: it could not be found out, because the server forbids the question. */
export type Level = 'ok' | 'warning' | 'error' | 'unknown';

/** One thing that was found out. */
export interface Finding {
  /** What was looked at: `eviction`. */
  readonly check: string;
  readonly level: Level;
  /** `host:port`; missing where it is about all of them. */
  readonly server?: string;
  readonly text: string;
  /** What to do; missing where there is nothing to do. */
  readonly remedy?: string;
}

/** A finding without the names of its check and server. */
export type Found = Omit<Finding, 'check' | 'server'>;

export const ok = (text: string): Found => ({ level: 'ok', text });
export const warning = (text: string, remedy: string): Found => ({
  level: 'warning',
  text,
  remedy,
});
export const error = (text: string, remedy: string): Found => ({ level: 'error', text, remedy });

/** @param why what the server answered */
export const unknown = (what: string, why: string): Found => ({
  level: 'unknown',
  text: `${what} is not known, because the server refuses to say (${withoutEnd(why).replace(/\.$/, '')}).`,
  remedy: 'Look into the console or the configuration of the server.',
});
