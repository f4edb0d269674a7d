import { once } from 'node:events';

/**
 * `before`: the statement was not forwarded, PostgreSQL never saw it. `after`: PostgreSQL has answered up to
 * ReadyForQuery (so a COMMIT or a lone statement is durable), and nothing of that answer reached the client.
 */
export type FaultMoment = 'before' | 'after';

/**
 * `cut` resets both sides. `swallow` holds the connection until `release()`. `release` only counts and signals.
 * `delayMs` holds for that long. `run` awaits the function (say, a SIGKILL) and then cuts, or passes on if `then` says so.
 */
export type FaultAction =
  | 'cut'
  | 'swallow'
  | 'release'
  | { readonly delayMs: number }
  | { readonly run: (sql: string) => void | Promise<void>; readonly then?: 'cut' | 'release' };

/** What happens at a statement, at which moment, and how often (once unless `times` says more; Infinity is allowed). */
export interface Fault {
  readonly moment: FaultMoment;
  readonly action: FaultAction;
  readonly times?: number;
}

/** A fault that was set: whether it was hit, and the way to end it. */
export interface FaultHandle {
  /** How often it has fired. A test asserts on this, so that it cannot pass for want of the fault. */
  readonly hits: number;
  /** The SQL it fired at, in order. */
  readonly statements: readonly string[];
  /** Resolves when it fires for the first time. Never rejects: pair it with the test's own deadline. */
  readonly hit: Promise<void>;
  readonly times: number;
  /** Connections that `swallow` holds at this moment. */
  readonly held: number;
  /** Lets everything go on that this fault holds: the statement is forwarded, or the answer delivered. */
  release(): void;
  /** Ends the fault for statements to come; what it holds stays held until `release()`. */
  remove(): void;
}

/** The connection a fault fires on: it can be cut, and `over` resolves when either side has left. */
export interface FaultLine {
  readonly over: Promise<void>;
  cut(): void;
}

/** The faults of one proxy, in the order they were set: the first live one that matches wins. */
export class FaultTable {
  private readonly faults = new Set<ArmedFault>();

  add(match: string | RegExp, fault: Fault): ArmedFault {
    const armed = new ArmedFault(match, fault, () => this.faults.delete(armed));
    this.faults.add(armed);
    return armed;
  }

  find(moment: FaultMoment, sql: string): ArmedFault | undefined {
    for (const fault of this.faults) if (fault.matches(moment, sql)) return fault;
    return undefined;
  }

  /** Ends every fault and lets go of what they hold. */
  clear(): void {
    for (const fault of this.faults) {
      fault.remove();
      fault.release();
    }
  }
}

/** The state of one fault: how often it fired and which connections wait for its release. */
export class ArmedFault implements FaultHandle {
  hits = 0;
  readonly statements: string[] = [];
  readonly hit: Promise<void>;
  readonly times: number;
  private readonly waiting = new Set<() => void>();
  private signalHit: () => void = () => undefined;
  private removed = false;

  constructor(
    private readonly match: string | RegExp,
    private readonly fault: Fault,
    private readonly onRemove: () => void,
  ) {
    this.times = fault.times ?? 1;
    this.hit = new Promise((resolve) => (this.signalHit = resolve));
  }

  get held(): number {
    return this.waiting.size;
  }

  get live(): boolean {
    return !this.removed && this.hits < this.times;
  }

  matches(moment: FaultMoment, sql: string): boolean {
    if (!this.live || moment !== this.fault.moment) return false;
    // search() and not test(): a RegExp with the g flag would remember where it stood.
    return typeof this.match === 'string' ? sql.includes(this.match) : sql.search(this.match) !== -1;
  }

  /** Fires: counts, acts, signals. Resolves when the connection may go on; it may have been cut by then. */
  async fire(sql: string, line: FaultLine): Promise<void> {
    this.hits += 1;
    this.statements.push(sql);
    const { action } = this.fault;
    if (typeof action === 'object' && 'run' in action) {
      try {
        await action.run(sql);
      } finally {
        if (action.then !== 'release') line.cut();
        this.signalHit();
      }
      return;
    }
    if (action === 'cut') line.cut();
    const held = action === 'swallow' ? this.hold(line.over) : undefined;
    const delayed = typeof action === 'object' ? this.hold(line.over, action.delayMs) : undefined;
    // The signal comes last: who awaits `hit` finds the connection cut or held.
    this.signalHit();
    await (held ?? delayed);
  }

  release(): void {
    for (const letGo of this.waiting) letGo();
  }

  remove(): void {
    this.removed = true;
    this.onRemove();
  }

  private async hold(over: Promise<void>, delayMs?: number): Promise<void> {
    const ended = new AbortController();
    const letGo = (): void => ended.abort();
    this.waiting.add(letGo);
    void over.then(letGo);
    const timer = delayMs === undefined ? undefined : setTimeout(letGo, delayMs);
    await once(ended.signal, 'abort');
    clearTimeout(timer);
    this.waiting.delete(letGo);
  }
}
