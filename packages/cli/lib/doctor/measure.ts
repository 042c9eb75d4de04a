import type { Server } from './server.js';

const SAMPLES = 5;

/** What the clock of a server shows, and how long it takes to ask it. */
export type Measured =
  | {
      readonly status: 'measured';
      readonly medianMs: number;
      /** By how much its clock is ahead of this machine's; exact to within half of the quickest answer. */
      readonly offsetMs: number;
    }
  | { readonly status: 'failed'; readonly message: string };

const measured = new WeakMap<Server, Promise<Measured>>();

/** Measured once for each server. */
export function timesOf(server: Server): Promise<Measured> {
  const known = measured.get(server) ?? measure(server);
  measured.set(server, known);
  return known;
}

async function measure(server: Server): Promise<Measured> {
  const samples: { readonly tookMs: number; readonly offsetMs: number }[] = [];
  for (let i = 0; i < SAMPLES; i += 1) {
    const sent = server.runtime.now();
    const answer = await server.ask('time');
    if (answer.status === 'failed') return answer;
    const tookMs = server.runtime.now().monotonicMs - sent.monotonicMs;
    const [seconds, micros] = (answer.value as readonly unknown[]).map(Number);
    const serverMs = (seconds ?? NaN) * 1_000 + (micros ?? NaN) / 1_000;
    samples.push({ tookMs, offsetMs: serverMs - (sent.wallMs + tookMs / 2) });
  }
  samples.sort((a, b) => a.tookMs - b.tookMs);
  return {
    status: 'measured',
    medianMs: samples[Math.floor(SAMPLES / 2)]?.tookMs ?? NaN,
    offsetMs: samples[0]?.offsetMs ?? NaN,
  };
}
