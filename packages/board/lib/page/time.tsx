import { useEffect, useState } from 'preact/hooks';

/** By how many ms the clock of the application is ahead of this browser's. */
let aheadMs = 0;

/** Takes the clock of the application over. */
export function setClock(at: string): void {
  aheadMs = Date.parse(at) - Date.now();
}

export const now = (): number => Date.now() + aheadMs;

/** Renders again every second, because the times change. */
export function useSeconds(): void {
  const [, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((seconds) => seconds + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
}

/** `3 min 12 s` */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  if (minutes > 0) return `${minutes} min ${seconds % 60} s`;
  return `${seconds} s`;
}

/** `320 ms`, `1.4 s`, `3 min 12 s` */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : span(ms);
}

/** `2026-11-27 03:12:07 UTC`, as the command line prints it. */
export const exact = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;

/** How long ago, and when. */
export function Since({ at }: { readonly at: string | undefined }) {
  if (at === undefined) return <span class="quiet">not known</span>;
  return (
    <time dateTime={at} title={at}>
      {span(now() - Date.parse(at))} <span class="quiet exact">{exact(at)}</span>
    </time>
  );
}

/** When, and how long ago. */
export function At({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={at} class="quiet">
      {exact(at)} · {span(now() - Date.parse(at))} ago
    </time>
  );
}
