/** How much a group may hold, and how many groups may be under way at once. */
export interface GroupLimits {
  readonly inputsMax: number;
  readonly bytesMax: number;
  readonly flightsMax: number;
}

/** What became of one call of a group. */
export type Settled<Output> = { readonly value: Output } | { readonly error: unknown };

interface Waiter<Input, Output> {
  readonly input: Input;
  readonly resolve: (value: Output) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes one call of many that come at the same time. A group starts when a flight is free, at the end of the turn of
 * the event loop in which its first call came, so that all requests read in that turn are in it; what comes while the
 * flights are full gathers for the next. No call waits for a timer, and none joins a group that has already started.
 */
export function groupCalls<Input, Output>(
  run: (inputs: readonly Input[]) => Promise<readonly Settled<Output>[]>,
  limits: GroupLimits,
  bytesOf: (input: Input) => number = () => 0,
): (input: Input) => Promise<Output> {
  const waiting: Waiter<Input, Output>[] = [];
  let flights = 0;
  let scheduled = false;

  // It never rejects: every failure goes to the waiters.
  async function fly(): Promise<void> {
    flights += 1;
    while (waiting.length > 0) {
      const group = waiting.splice(0, groupSize(waiting, limits, bytesOf));
      await settle(run, group);
    }
    flights -= 1;
  }

  function start(): void {
    scheduled = false;
    while (flights < limits.flightsMax && waiting.length > 0) void fly();
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (scheduled || flights >= limits.flightsMax) return;
      scheduled = true;
      setImmediate(start);
    });
}

function groupSize<Input>(
  waiting: readonly { readonly input: Input }[],
  { inputsMax, bytesMax }: GroupLimits,
  bytesOf: (input: Input) => number,
): number {
  let bytes = 0;
  let count = 0;
  while (count < waiting.length && count < inputsMax) {
    bytes += bytesOf(waiting[count]!.input);
    if (count > 0 && bytes > bytesMax) break;
    count += 1;
  }
  return count;
}

async function settle<Input, Output>(
  run: (inputs: readonly Input[]) => Promise<readonly Settled<Output>[]>,
  group: readonly Waiter<Input, Output>[],
): Promise<void> {
  try {
    const results = await run(group.map(({ input }) => input));
    group.forEach(({ resolve, reject }, index) => {
      const result = results[index]!;
      if ('error' in result) reject(result.error);
      else resolve(result.value);
    });
  } catch (error) {
    for (const { reject } of group) reject(error);
  }
}
