/** One message of a client, whole. `parts` are views of the chunks it came in: nothing was copied. */
export interface ClientMessage {
  readonly type: string;
  readonly parts: readonly Buffer[];
}

/** Joins the views of a message; a message that came in one piece is not copied. */
export function wholeMessage(message: ClientMessage): Buffer {
  const [first] = message.parts;
  return message.parts.length === 1 && first !== undefined ? first : Buffer.concat(message.parts);
}

/** Reads the zero-terminated strings of a typed message, `count` of them, from its body on. */
export function readStrings(message: Buffer, count: number): string[] {
  const found: string[] = [];
  let start = 5;
  while (found.length < count) {
    const end = message.indexOf(0, start);
    if (end === -1) break;
    found.push(message.toString('utf8', start, end));
    start = end + 1;
  }
  return found;
}

/** Cuts a client's byte stream into whole messages. The first ones (until `startupDone()`) carry no type byte. */
export class ClientMessageReader {
  private parts: Buffer[] = [];
  private haveBytes = 0;
  private wantBytes = 0;
  private typed = false;

  /** From the next message on a type byte stands in front of the length. May be called between two yields of `read`. */
  startupDone(): void {
    this.typed = true;
  }

  /** Takes a chunk and yields each message that it completes. */
  *read(chunk: Buffer): Generator<ClientMessage> {
    let rest = chunk;
    while (rest.length > 0) {
      const headerBytes = this.typed ? 5 : 4;
      if (this.wantBytes === 0 && this.haveBytes + rest.length < headerBytes) {
        this.keep(rest);
        return;
      }
      if (this.wantBytes === 0) this.wantBytes = this.lengthOf(this.peekHeader(rest, headerBytes));
      const missing = this.wantBytes - this.haveBytes;
      this.keep(rest.subarray(0, missing));
      rest = rest.subarray(missing);
      if (this.haveBytes < this.wantBytes) return;
      const parts = this.parts;
      this.parts = [];
      this.haveBytes = 0;
      this.wantBytes = 0;
      yield { type: this.typed ? String.fromCharCode(parts[0]?.[0] ?? 0) : 'startup', parts };
    }
  }

  private keep(part: Buffer): void {
    this.parts.push(part);
    this.haveBytes += part.length;
  }

  /** What is kept of an unfinished header is at most 4 bytes, so joining it copies next to nothing. */
  private peekHeader(next: Buffer, headerBytes: number): Buffer {
    return this.haveBytes === 0 ? next : Buffer.concat([...this.parts, next.subarray(0, headerBytes)]);
  }

  private lengthOf(header: Buffer): number {
    const total = this.typed ? header.readUInt32BE(1) + 1 : header.readUInt32BE(0);
    if (total < 4) throw new Error(`not the PostgreSQL protocol: a message of ${total} bytes`);
    return total;
  }
}

/**
 * Walks a server's byte stream and tells where each ReadyForQuery ends, without keeping or copying a byte. All messages
 * of a server carry a type byte (we answer SSLRequest ourselves, so its bare letter never occurs).
 */
export class ReadyForQueryScanner {
  private readonly header = Buffer.alloc(5);
  private headerFilled = 0;
  private bodyLeft = 0;

  /** Offsets in `chunk` just behind each ReadyForQuery that ends in it. */
  ends(chunk: Buffer): number[] {
    const found: number[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (this.headerFilled < 5) {
        const taken = chunk.copy(this.header, this.headerFilled, at, at + 5 - this.headerFilled);
        this.headerFilled += taken;
        at += taken;
        if (this.headerFilled < 5) break;
        this.bodyLeft = this.header.readUInt32BE(1) - 4;
      }
      const skipped = Math.min(this.bodyLeft, chunk.length - at);
      at += skipped;
      this.bodyLeft -= skipped;
      if (this.bodyLeft > 0) break;
      if (this.header[0] === 0x5a) found.push(at);
      this.headerFilled = 0;
    }
    return found;
  }
}
