import { redact } from '../errors/redact.js';
import type {
  AcquireOutcome,
  ExtendOutcome,
  InspectOutcome,
  ReleaseOutcome,
  SetLimitOutcome,
  TransferOutcome,
  Unavailable,
  WriteOutcome,
} from './lock-store.js';
import type { BeginOutcome, FinishOutcome } from './once-store.js';

/** Of every status: whether the rest of the outcome is what it should be. */
type Shapes<Outcome extends { readonly status: string }> = Readonly<
  Record<Outcome['status'], (outcome: Readonly<Record<string, unknown>>) => boolean>
>;

const isText = (value: unknown): boolean => typeof value === 'string';

/** `Infinity` is one, `NaN` is not. */
const isDuration = (value: unknown): boolean => typeof value === 'number' && value >= 0;

const isFencingToken = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Number(value) > 0;

const isNode = (value: unknown): boolean => {
  const { node, kind, message } = Object(value) as Record<string, unknown>;
  return isText(node) && isText(kind) && isText(message);
};

const anything = (): boolean => true;

const UNAVAILABLE: Shapes<Unavailable> = {
  unavailable: ({ nodes }) => Array.isArray(nodes) && Array.from(nodes).every(isNode),
};

export const ACQUIRE: Shapes<AcquireOutcome> = {
  ...UNAVAILABLE,
  granted: ({ fencingToken, turns = 1, othersWait = false, otherLimit = 1 }) =>
    isFencingToken(fencingToken) &&
    isFencingToken(turns) &&
    typeof othersWait === 'boolean' &&
    isFencingToken(otherLimit),
  held: ({
    key,
    remainingMs,
    checkAgainMs,
    contended = true,
    ticket = 0,
    holder = '',
    otherLimit = 1,
    heldForMs = 0,
    kept = false,
  }) =>
    isText(key) &&
    isText(holder) &&
    isDuration(remainingMs) &&
    isDuration(checkAgainMs) &&
    contended === true &&
    isDuration(ticket) &&
    isDuration(heldForMs) &&
    typeof kept === 'boolean' &&
    isFencingToken(otherLimit),
};

export const EXTEND: Shapes<ExtendOutcome> = {
  ...UNAVAILABLE,
  extended: anything,
  lost: ({ reason }) => reason === 'stolen' || reason === 'released-elsewhere',
};

export const RELEASE: Shapes<ReleaseOutcome> = {
  ...UNAVAILABLE,
  released: anything,
  'not-held': anything,
};

const LOST_IN_TRANSFER: readonly unknown[] = ['gone', 'attached', 'stolen'];

export const TRANSFER: Shapes<TransferOutcome> = {
  ...UNAVAILABLE,
  transferred: anything,
  lost: ({ reason }) => LOST_IN_TRANSFER.includes(reason),
};

export const WRITE: Shapes<WriteOutcome> = {
  ...UNAVAILABLE,
  written: ({ replies }) => Array.isArray(replies),
  failed: ({ index, message }) => Number.isSafeInteger(index) && isText(message),
  lost: EXTEND.lost,
  refused: ({ problem }) => isText(problem),
};

export const SET_LIMIT: Shapes<SetLimitOutcome> = { ...UNAVAILABLE, set: anything };

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

export const BEGIN: Shapes<BeginOutcome> = {
  ...UNAVAILABLE,
  begun: ({ attempt }) => isCount(attempt),
  done: ({ attempts, value = '' }) => isCount(attempts) && isText(value),
  exhausted: ({ attempts, error = '' }) => isCount(attempts) && isText(error),
  lost: ({ attempts }) => isCount(attempts),
};

export const FINISH: Shapes<FinishOutcome> = {
  ...UNAVAILABLE,
  accepted: anything,
  superseded: anything,
};

export const INSPECT: Shapes<InspectOutcome> = {
  ...UNAVAILABLE,
  free: anything,
  held: ({ remainingMs }) => isDuration(remainingMs),
};

/** Asks a store. An error that it throws, and an outcome that no store may return, is an outage. */
export function guard<Outcome extends { readonly status: string }>(
  shapes: Shapes<Outcome>,
  request: () => unknown,
): Promise<Outcome | Unavailable> {
  try {
    return Promise.resolve(request()).then((outcome) => checked(shapes, outcome), faulty);
  } catch (error) {
    return Promise.resolve(faulty(error));
  }
}

function checked<Outcome extends { readonly status: string }>(
  shapes: Shapes<Outcome>,
  outcome: unknown,
): Outcome | Unavailable {
  try {
    const fields = Object(outcome) as Readonly<Record<string, unknown>>;
    const status = String(fields.status);
    const isWhole = Object.hasOwn(shapes, status) && shapes[status as Outcome['status']](fields);
    if (isWhole) return outcome as Outcome;
    return faulty(`the answer is none that a store may give (status: ${status})`);
  } catch (error) {
    return faulty(error);
  }
}

/** The outage that a fault of the store is. */
export function faulty(error: unknown): Unavailable {
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'error', message: redact(textOf(error)) }],
    transient: false,
  };
}

/** Anything can be thrown, also what has no text. */
export function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return 'an error without text';
  }
}
