import type { Socket } from 'node:net';

import { expect, it } from 'vitest';

import { readGauge } from '../support/read-gauge.js';
import { startRawReceiver, type RawRequest } from '../support/raw-receiver.js';
import { FULL } from '../support/sizes.js';
import { openStage, QUICK } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const DEADLINE_MS = 1_000;
/** The case allows half a second beyond the deadline. */
const LATEST_MS = DEADLINE_MS + 500;
const DRIP_MS = 300;
/** Seven attempts each. */
const EVENTS = FULL ? 143 : 2;
const GROWTH_MAX_BYTES = 20_000_000;

/** A receiver that sends a piece now and then, until it is hung up on. */
function drip(socket: Socket, piece: string): void {
  const timer = setInterval(() => socket.write(piece), DRIP_MS);
  socket.once('close', () => clearInterval(timer));
}

function pour(socket: Socket): void {
  const chunk = `4000\r\n${'y'.repeat(0x4000)}\r\n`;
  const write = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', write);
  write();
}

type Found = readonly [outcome: string, status: number | null, errorKind: string | null];

/** How each of the case's receivers behaves, and what its attempt is from the first time to the last. */
const RECEIVERS: Record<string, { readonly answer: (socket: Socket) => void; readonly found: Found }> = {
  'a-never-answers': { answer: () => undefined, found: ['failed', null, 'timeout'] },
  'b-drips-headers': {
    answer: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx-drip: ');
      drip(socket, 'a');
    },
    found: ['failed', null, 'timeout'],
  },
  'c-drips-body': {
    answer: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n');
      drip(socket, 'b');
    },
    found: ['succeeded', 200, null],
  },
  'd-floods-with-1xx': {
    answer: (socket) =>
      drip(socket, 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'),
    found: ['failed', null, 'timeout'],
  },
  'e-endless-body': {
    answer: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      pour(socket);
    },
    found: ['succeeded', 200, null],
  },
  'f-endless-headers': {
    answer: (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(100_000)}\r\n`),
    found: ['failed', null, 'headers_overflow'],
  },
  'g-hangs-up': {
    answer: (socket) => socket.end('HTTP/1.1 200 OK\r\n'),
    found: ['failed', null, 'connection_reset'],
  },
};

const READ_ATTEMPTS = `
select regexp_replace(p.url, '.*/', '') as path, a.duration_ms, array[a.outcome, a.status_code::text, a.error_kind] as found
from waybill.attempts a
join waybill.endpoints p on p.tenant_id = a.tenant_id and p.id = a.endpoint_id
`;

it('[row 39] [H18] every attempt ends at its deadline, whatever the receiver does, and always in the same way', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const hostile = await startRawReceiver(({ socket, bytes }: RawRequest) => {
    const path = /^POST \/(\S+)/.exec(bytes.toString('latin1', 0, 100))![1]!;
    RECEIVERS[path]!.answer(socket);
  });
  onTestFinished(() => hostile.close());
  for (const path of Object.keys(RECEIVERS))
    await stage.addEndpoint(`http://127.0.0.1:${hostile.port}/${path}`);
  const env = { WAYBILL_ATTEMPT_TIMEOUT_MS: String(DEADLINE_MS), WAYBILL_RETRY_SCHEDULE: '600' };
  const dispatcher = await stage.boot({ ...QUICK, ...env });
  const rssBefore = await readGauge(dispatcher, 'waybill_process_resident_memory_bytes');
  await stage.publish(EVENTS);

  const count = EVENTS * Object.keys(RECEIVERS).length;
  const attempts = await waitFor(
    async () => {
      const { rows } = await stage.pool.query<{
        path: string;
        duration_ms: number;
        found: (string | null)[];
      }>(`${READ_ATTEMPTS} where p.id <> $1`, [stage.endpointId]);
      return rows.length === count && rows;
    },
    { what: 'all attempts', timeoutMs: 40_000 },
  );
  for (const [path, { found }] of Object.entries(RECEIVERS)) {
    const of = attempts.filter((attempt) => attempt.path === path);
    expect(of.map((attempt) => attempt.found)).toEqual(
      Array.from({ length: EVENTS }, () => found.map((value) => (value === null ? null : String(value)))),
    );
    for (const { duration_ms } of of) expect(duration_ms).toBeLessThanOrEqual(LATEST_MS);
  }
  expect(await readGauge(dispatcher, 'waybill_dispatcher_in_flight')).toBe(0);
  await hostile.untilClosed(hostile.opened.length);
  // Nothing was sent twice beneath an attempt.
  expect(hostile.requests).toHaveLength(count);
  const rss = await readGauge(dispatcher, 'waybill_process_resident_memory_bytes');
  expect(rss - rssBefore).toBeLessThan(GROWTH_MAX_BYTES * (FULL ? 1 : 3));
});
