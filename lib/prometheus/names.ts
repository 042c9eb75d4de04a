import type { Label, METRICS } from '../observe/metrics.js';

/** `holdfast.acquire.duration` is `holdfast_acquire_duration_seconds`. */
export function nameIn({ name, unit, kind }: (typeof METRICS)[keyof typeof METRICS]): string {
  const base = name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '');
  return kind === 'counter' ? `${base}_total` : base;
}

/** `holdfast.key.template` is `template`, `server.address` is `server_address`. */
export const labelIn = (label: Label): string =>
  label.replace(/^holdfast\.(key\.)?/, '').replaceAll('.', '_');
