import net from 'node:net';

/** One whole request as it came over the wire. */
export interface RawRequest {
  readonly socket: net.Socket;
  readonly bytes: Buffer;
  /** 0 for the first request of this receiver. */
  readonly index: number;
}

/** A receiver that speaks bytes, so that it can misbehave in any way. */
export interface RawReceiver {
  readonly port: number;
  readonly requests: Buffer[];
  /** Sockets that were opened, with or without a request. */
  readonly opened: net.Socket[];
  /** Resolves when this many opened sockets have been closed. */
  untilClosed(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts a receiver on loopback, at a port of the system's choice; `answer` is called for every whole request. */
export async function startRawReceiver(
  answer: (request: RawRequest) => void,
  address = '127.0.0.1',
): Promise<RawReceiver> {
  const requests: Buffer[] = [];
  const opened: net.Socket[] = [];
  let closed = 0;
  let waiting: { count: number; resolve: () => void }[] = [];
  const server = net.createServer((socket) => {
    opened.push(socket);
    let pending = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed += 1;
      for (const wait of waiting) if (closed >= wait.count) wait.resolve();
      waiting = waiting.filter((wait) => closed < wait.count);
    });
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (let length = wholeLength(pending); length > 0; length = wholeLength(pending)) {
        const bytes = pending.subarray(0, length);
        pending = pending.subarray(length);
        requests.push(bytes);
        answer({ socket, bytes, index: requests.length - 1 });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port');
  return {
    port: bound.port,
    requests,
    opened,
    untilClosed: (count) =>
      closed >= count
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push({ count, resolve });
          }),
    close: () => {
      for (const socket of opened) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The length of the first whole request in these bytes, 0 while it is incomplete. */
function wholeLength(bytes: Buffer): number {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return 0;
  const match = /\r\ncontent-length: (\d+)/i.exec(bytes.toString('latin1', 0, end + 2));
  const length = end + 4 + Number(match?.[1] ?? 0);
  return bytes.length >= length ? length : 0;
}
