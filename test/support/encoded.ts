import type { KeyNames } from '../../lib/store/redis/scripts/key-names.js';
import type { Share, SharedVerb } from '../../lib/store/redis/scripts/plain.js';
import type { ScriptCall, ServerFacts, Verb } from '../../lib/store/redis/scripts/script.js';

/** Facts of a server; a standalone one, where they say nothing else. */
interface Facts extends Partial<Pick<ServerFacts, 'lineMode' | 'epoch'>> {
  /** The names of the keys of the request. */
  readonly names?: readonly KeyNames[];
  readonly fenceKeepMs?: number;
  /** Of the restart guard. */
  readonly maxTtlMs?: number | undefined;
}

type Asked<Request> = Omit<Request, 'keys' | keyof Facts> & Facts;

/** A server of which these are the facts; its keys are called by their positions. */
const serverOf = ({ names = [], ...others }: Facts): ServerFacts => ({
  lineMode: others.lineMode ?? 'standalone',
  epoch: others.epoch,
  options: {
    fenceKeepMs: others.fenceKeepMs ?? 600_000,
    restartGuard:
      others.maxTtlMs === undefined ? undefined : { maxTtlMs: others.maxTtlMs, bootstrap: false },
  },
  names: (key) =>
    names[Number(key)] ?? {
      ...{ main: '', fence: '', queue: '', holders: '', limit: '', once: '', newest: '' },
    },
});

/** The call that a verb makes of a request, and what it reads from a reply. */
export function asked<Request, Answer>(
  verb: Verb<Request, Answer>,
  { names = [], ...others }: Asked<Request>,
): { readonly call: ScriptCall; readonly answer: (reply: unknown) => Answer | undefined } {
  const request = { ...others, keys: names.map((_, index) => String(index)) } as Request;
  const server = serverOf({ names, ...others });
  return {
    call: verb.encode(request, server),
    answer: (reply) => verb.decode(reply, request, server),
  };
}

export const encoded = <Request>(
  verb: Verb<Request, unknown>,
  request: Asked<Request>,
): ScriptCall => asked(verb, request).call;

/** What a request gives to a call that several can share. */
export function shared<Request>(
  verb: SharedVerb<Request, unknown>,
  {
    names,
    fenceKeepMs,
    ...others
  }: Omit<Request, 'key'> & { readonly names: KeyNames; readonly fenceKeepMs?: number },
): Share {
  const request = { ...others, key: '0' } as unknown as Request;
  return verb.encode(request, serverOf({ names: [names], fenceKeepMs }));
}
