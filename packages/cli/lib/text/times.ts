const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

const inTwo = (ms: number, large: number, largeName: string, small: number, smallName: string) => {
  const rest = Math.floor((ms % large) / small);
  const first = `${String(Math.floor(ms / large))} ${largeName}`;
  return rest === 0 ? first : `${first} ${String(rest)} ${smallName}`;
};

/** A duration for people: `412 ms`, `12 s`, `4 min 12 s`, `3 h 5 min`, `2 d 4 h`; `never ends` for `Infinity`. */
export function lasting(ms: number): string {
  if (ms === Infinity) return 'never ends';
  const whole = Math.max(0, Math.round(ms));
  if (whole < SECOND) return `${String(whole)} ms`;
  if (whole < MINUTE) return `${String(Math.floor(whole / SECOND))} s`;
  if (whole < HOUR) return inTwo(whole, MINUTE, 'min', SECOND, 's');
  if (whole < DAY) return inTwo(whole, HOUR, 'h', MINUTE, 'min');
  return inTwo(whole, DAY, 'd', HOUR, 'h');
}

/** A moment with its zone: `2026-11-24 03:02:11 UTC`. The same on every machine. */
export const moment = (date: Date): string =>
  Number.isNaN(date.getTime())
    ? 'unknown'
    : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
