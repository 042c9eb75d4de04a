import type { KeyNames } from '../../lib/store/redis/scripts/key-names.js';
import type { ScriptCall, ServerFacts, Verb } from '../../lib/store/redis/scripts/script.js';

/** Facts of a server; a standalone one, where they say nothing else. */
interface Facts extends Partial<Pick<ServerFacts, 'lineMode' | 'epoch'>> {
  /** The names of the keys of the request. */
  readonly names?: readonly KeyNames[];
  readonly fenceKeepMs?: number;
  readonly turns?: number;
  /** Of the restart guard. */
  readonly maxTtlMs?: number | undefined;
}

type Asked<Request> = Omit<Request, 'keys' | keyof Facts> & Facts;

/** The call that a verb makes of a request, and what it reads from a reply. */
export function asked<Request, Answer>(
  verb: Verb<Request, Answer>,
  { names = [], ...others }: Asked<Request>,
): { readonly call: ScriptCall; readonly answer: (reply: unknown) => Answer | undefined } {
  const request = { ...others, keys: names.map((_, index) => String(index)) } as Request;
  const server: ServerFacts = {
    lineMode: others.lineMode ?? 'standalone',
    epoch: others.epoch,
    options: {
      fenceKeepMs: others.fenceKeepMs ?? 600_000,
      turns: others.turns ?? 1,
      restartGuard:
        others.maxTtlMs === undefined ? undefined : { maxTtlMs: others.maxTtlMs, bootstrap: false },
    },
    names: (key) => names[Number(key)] ?? { main: '', fence: '', queue: '', holders: '', once: '' },
  };
  return {
    call: verb.encode(request, server),
    answer: (reply) => verb.decode(reply, request, server),
  };
}

export const encoded = <Request>(
  verb: Verb<Request, unknown>,
  request: Asked<Request>,
): ScriptCall => asked(verb, request).call;
