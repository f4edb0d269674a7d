import type { Socket } from 'node:net';

import {
  type ClientMessage,
  ClientMessageReader,
  ReadyForQueryScanner,
  readStrings,
  wholeMessage,
} from './pg-messages.js';
import type { ArmedFault, FaultLine, FaultTable } from './pg-proxy-faults.js';

// The codes that stand where a startup message has its protocol version.
const CANCEL_REQUEST = 80_877_102;
const SSL_REQUEST = 80_877_103;
const GSSENC_REQUEST = 80_877_104;

/**
 * What PostgreSQL answers with one ReadyForQuery: a simple Query, or all up to a Sync. Its answer is withheld from the
 * first statement on that an `after` fault matches; whether the fault then fires is decided at the ReadyForQuery.
 */
interface Cycle {
  open: boolean;
  after?: { readonly fault: ArmedFault; readonly sql: string };
  readonly withheld: Buffer[];
}

/** What a connection shares with its proxy. */
export interface ConnectionSurroundings {
  readonly faults: FaultTable;
  /** Told each execution of a statement, as it is forwarded. */
  readonly onStatement: (sql: string) => void;
  readonly onOver: () => void;
}

/**
 * One client and its server connection. Both directions are a backlog of chunks and a pump: a pump stops while a fault
 * holds it, while the proxy is a black hole, and for ever once the connection is over.
 */
export class PgProxyConnection implements FaultLine {
  readonly over: Promise<void>;
  private isOver = false;
  private frozen: boolean;
  private signalOver: () => void = () => undefined;
  private readonly reader = new ClientMessageReader();
  private readonly scanner = new ReadyForQueryScanner();
  private readonly sqlByName = new Map<string, string>();
  /** Statements parsed but not yet bound: their first Bind is the same execution as their Parse. */
  private readonly freshlyParsed = new Set<string>();
  /** The first cycle is the startup, whose ReadyForQuery ends the authentication. */
  private readonly cycles: Cycle[] = [{ open: false, withheld: [] }];
  private readonly pumps: { toServer: Pump; toClient: Pump };
  private closing?: () => void;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly around: ConnectionSurroundings,
    frozen: boolean,
  ) {
    this.frozen = frozen;
    this.over = new Promise((resolve) => (this.signalOver = resolve));
    this.pumps = {
      toServer: { backlog: [], running: false, handle: (chunk) => this.fromClient(chunk) },
      toClient: { backlog: [], running: false, handle: (chunk) => this.fromServer(chunk) },
    };
    this.listen(client, server, this.pumps.toServer);
    this.listen(server, client, this.pumps.toClient);
  }

  /** Resets both sides at once, whatever is held. */
  cut(): void {
    this.finish(() => {
      this.client.resetAndDestroy();
      this.server.resetAndDestroy();
    });
  }

  /** As a black hole nothing passes, not even that a side has left; afterwards all of it arrives in order. */
  freeze(frozen: boolean): void {
    this.frozen = frozen;
    if (frozen) return;
    void this.thaw();
  }

  private async thaw(): Promise<void> {
    await Promise.all([this.pump(this.pumps.toServer), this.pump(this.pumps.toClient)]);
    if (this.closing && !this.frozen) this.finish(this.closing);
  }

  private listen(from: Socket, to: Socket, pump: Pump): void {
    from.setNoDelay(true);
    // Each error is followed by 'close', which is handled.
    from.on('error', () => undefined);
    from.on('data', (chunk: Buffer) => {
      pump.backlog.push(chunk);
      void this.pump(pump);
    });
    to.on('drain', () => from.resume());
    from.on('close', (hadError) => {
      const pass = (): void => {
        if (from === this.server) this.flushWithheld();
        // A reset is passed on as a reset; after a plain end the other side still gets what was written to it.
        if (hadError) to.resetAndDestroy();
        else to.destroySoon();
      };
      if (this.frozen) this.closing ??= pass;
      else this.finish(pass);
    });
  }

  private finish(close: () => void): void {
    if (this.isOver) return;
    close();
    this.isOver = true;
    this.signalOver();
    this.around.onOver();
  }

  private async pump(pump: Pump): Promise<void> {
    if (pump.running) return;
    pump.running = true;
    while (pump.backlog.length > 0 && !this.frozen && !this.isOver) {
      const chunk = pump.backlog.shift();
      if (chunk !== undefined) await pump.handle(chunk);
    }
    pump.running = false;
  }

  private async fromClient(chunk: Buffer): Promise<void> {
    this.server.cork();
    for (const message of this.reader.read(chunk)) {
      const sql = this.startsStatement(message);
      const fault = sql === undefined ? undefined : this.around.faults.find('before', sql);
      if (sql !== undefined && fault !== undefined) {
        this.server.uncork();
        await fault.fire(sql, this);
        if (this.isOver) return;
        this.server.cork();
      }
      this.forward(message);
    }
    this.server.uncork();
  }

  /** The SQL of a message that begins an execution: what `before` faults are tested against. */
  private startsStatement(message: ClientMessage): string | undefined {
    if (message.type === 'Q') return readStrings(wholeMessage(message), 1)[0];
    if (message.type === 'P') {
      const [name = '', sql = ''] = readStrings(wholeMessage(message), 2);
      this.sqlByName.set(name, sql);
      this.freshlyParsed.add(name);
      return sql;
    }
    if (message.type !== 'B') return undefined;
    const name = boundName(message);
    return this.freshlyParsed.delete(name) ? undefined : this.sqlByName.get(name);
  }

  private forward(message: ClientMessage): void {
    if (message.type === 'startup') return this.forwardStartup(message);
    const executed = this.executes(message);
    const cycle = this.cycleOf(message.type);
    if (executed !== undefined) {
      this.around.onStatement(executed);
      const fault = this.around.faults.find('after', executed);
      if (cycle && fault) cycle.after ??= { fault, sql: executed };
    }
    if (message.type === 'C') {
      const [target = ''] = readStrings(wholeMessage(message), 1);
      if (target.startsWith('S')) this.sqlByName.delete(target.slice(1));
    }
    this.write(this.server, this.client, message.parts);
  }

  private forwardStartup(message: ClientMessage): void {
    const code = wholeMessage(message).readUInt32BE(4);
    if (code === SSL_REQUEST || code === GSSENC_REQUEST) {
      this.client.write('N');
      return;
    }
    if (code !== CANCEL_REQUEST) this.reader.startupDone();
    this.write(this.server, this.client, message.parts);
  }

  /** The SQL that a message executes, which is what counts for `after` faults: a Parse alone executes nothing. */
  private executes(message: ClientMessage): string | undefined {
    if (message.type === 'Q') return readStrings(wholeMessage(message), 1)[0];
    return message.type === 'B' ? this.sqlByName.get(boundName(message)) : undefined;
  }

  private cycleOf(type: string): Cycle | undefined {
    const last = this.cycles.at(-1);
    const cycle: Cycle = last?.open ? last : { open: true, withheld: [] };
    if (!'QFPBDECSH'.includes(type)) return undefined;
    if (cycle !== last) this.cycles.push(cycle);
    if ('QFS'.includes(type)) cycle.open = false;
    return cycle;
  }

  private async fromServer(chunk: Buffer): Promise<void> {
    let start = 0;
    for (const end of this.scanner.ends(chunk)) {
      this.deliver(chunk.subarray(start, end));
      start = end;
      const cycle = this.cycles.shift();
      if (cycle?.after?.fault.live) await cycle.after.fault.fire(cycle.after.sql, this);
      if (this.isOver) return;
      if (cycle) this.write(this.client, this.server, cycle.withheld);
    }
    this.deliver(chunk.subarray(start));
  }

  private deliver(piece: Buffer): void {
    const [cycle] = this.cycles;
    if (piece.length === 0) return;
    if (cycle?.after) cycle.withheld.push(piece);
    else this.write(this.client, this.server, [piece]);
  }

  /** A server that leaves in the middle of a withheld answer gave no ReadyForQuery: the fault does not fire. */
  private flushWithheld(): void {
    const [cycle] = this.cycles;
    if (cycle?.after) this.write(this.client, this.server, cycle.withheld);
  }

  private write(to: Socket, from: Socket, parts: readonly Buffer[]): void {
    for (const part of parts) if (to.writable && !to.write(part)) from.pause();
  }
}

interface Pump {
  readonly backlog: Buffer[];
  running: boolean;
  readonly handle: (chunk: Buffer) => Promise<void>;
}

function boundName(message: ClientMessage): string {
  // The two names stand first; the parameters behind them may be megabytes and are not joined.
  const [first] = message.parts;
  const names = first === undefined ? [] : readStrings(first, 2);
  return (names.length === 2 ? names : readStrings(wholeMessage(message), 2))[1] ?? '';
}
