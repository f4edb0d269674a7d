import { ResponseReader } from '../../libs/egress/response-reader.js';

/** What a reader told its sink, body bytes joined. */
export interface ReadResponse {
  status?: number;
  retryAfter?: string | null;
  location?: string | null;
  body: string;
  keepMs?: number;
  fault?: string;
}

/** Reads one response that comes in these pieces, as a connection would: all through one buffer that is used again. */
export function readResponse(pieces: readonly Buffer[], hangsUp = false): ReadResponse {
  const told: ReadResponse = { body: '' };
  const reader = new ResponseReader();
  reader.begin({
    onHead: (status, retryAfter, location) => void Object.assign(told, { status, retryAfter, location }),
    onBody: (bytes, from, to) => void (told.body += bytes.toString('latin1', from, to)),
    onEnd: (keepMs) => void (told.keepMs = keepMs),
    onFault: (error) => void (told.fault = Reflect.get(error, 'kind') as string),
  });
  const shared = Buffer.alloc(Math.max(1, ...pieces.map((piece) => piece.length)));
  for (const piece of pieces) {
    // What a connection does with bytes that come after the end.
    if (!reader.isWaiting && told.keepMs !== undefined) told.keepMs = 0;
    shared.fill(0xee);
    piece.copy(shared);
    reader.read(shared, piece.length);
  }
  if (hangsUp && reader.isWaiting) reader.close();
  return told;
}

/** Bytes whole, cut in two at each place there is, and as single bytes. */
export function allCuts(bytes: Buffer): Buffer[][] {
  const inTwo = Array.from(bytes.subarray(1), (_, at) => [bytes.subarray(0, at + 1), bytes.subarray(at + 1)]);
  return [[bytes], ...inTwo, Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))];
}
