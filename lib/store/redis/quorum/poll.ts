/** Answers to one question that was put to several nodes at once. */
export interface Poll<Answer, Outcome> {
  readonly outcome: Outcome;
  /** In the order of the nodes, as they stood when the matter was decided; `undefined` of those that had not answered. */
  readonly answers: readonly (Answer | undefined)[];
  /** Resolves with the answers of all nodes. */
  readonly complete: Promise<readonly Answer[]>;
}

interface Voter {
  /** The node owes answers whose time is up. */
  readonly isSilent: boolean;
}

/**
 * Asks all nodes at once, and waits only until the replies decide the outcome. A node that was silent before is asked
 * too, but not waited for if the others are enough: it delays no caller twice.
 *
 * @param needed how many replies can decide the outcome
 * @param ask never rejects
 * @param outcomeOf is given the replies so far, and how many of the missing ones are waited for. `undefined` is no
 *   outcome yet; it must return one if none is waited for
 */
export function poll<Node extends Voter, Answer, Outcome>(
  nodes: readonly Node[],
  needed: number,
  ask: (node: Node) => Promise<Answer>,
  outcomeOf: (answers: readonly (Answer | undefined)[], awaited: number) => Outcome | undefined,
): Promise<Poll<Answer, Outcome>> {
  const answers = nodes.map((): Answer | undefined => undefined);
  const isHeard = nodes.map(({ isSilent }) => !isSilent);
  const isAwaited = isHeard.filter(Boolean).length < needed ? nodes.map(() => true) : isHeard;
  let awaited = isAwaited.filter(Boolean).length;
  let isDecided = false;
  // Before the promise, so that an `ask` that throws makes no other reply decide.
  const asked = nodes.map((node) => ask(node));
  return new Promise((decide, fail) => {
    const complete = Promise.all(
      asked.map((answering, index) =>
        answering.then((answer) => {
          answers[index] = answer;
          if (isAwaited[index] === true) awaited -= 1;
          if (isDecided) return answer;
          const outcome = outcomeOf(answers, awaited);
          if (outcome === undefined) return answer;
          isDecided = true;
          decide({ outcome, answers: [...answers], complete });
          return answer;
        }),
      ),
    );
    // The poll never rejects, unless `ask` breaks its promise: then the caller has to get the error, and the process must not
    // end.
    complete.catch(fail);
  });
}

/** The smallest number of nodes of which any two sets have one in common. */
export const quorumOf = (nodes: number): number => Math.floor(nodes / 2) + 1;
