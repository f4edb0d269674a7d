import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { membersOf } from './raw-json.mjs';
import { startReceiver } from './receiver.mjs';

const DEMO_EVENTS = ['push', 'pull_request', 'issues', 'release', 'check_run'];
const ARRIVAL_MS = 30_000;

/**
 * Sends five real GitHub payloads through Waybill to a receiver of its own, which it hands to `onReceiver`, and prints
 * each arrival. Returns whether all arrived, verified, with every byte as it was sent.
 */
export async function runDemo({ apiUrl, key, paint, print, onReceiver }) {
  const arrivals = new Map();
  let notify;
  const receiver = await startReceiver({
    apiUrl,
    key,
    onArrival: (arrival) => {
      arrivals.set(arrival.eventId, arrival);
      notify?.();
    },
  });
  onReceiver(receiver);
  print(`${paint.bold('Demo')}  five GitHub payloads to ${receiver.url} (endpoint ${receiver.endpointId})`);
  const sent = [];
  for (const { eventType, payload } of readExamples(DEMO_EVENTS)) {
    const event = await receiver.api.send(
      'POST',
      '/v1/events',
      `{"event_type":"${eventType}","payload":${payload}}`,
    );
    sent.push({
      eventType,
      payload: Buffer.from(payload),
      id: event.id,
      acceptedMs: Date.parse(event.created_at),
    });
  }
  const deadline = performance.now() + ARRIVAL_MS;
  const outstanding = new Set(sent);
  while (outstanding.size > 0 && performance.now() < deadline) {
    const arrived = new Promise((settle) => (notify = settle));
    for (const event of outstanding) {
      const arrival = arrivals.get(event.id);
      if (!arrival) continue;
      outstanding.delete(event);
      event.intact = arrival.verified && arrival.body.equals(event.payload);
      print(demoLine(event, arrival, paint));
    }
    if (outstanding.size > 0) await Promise.race([arrived, timeout(deadline - performance.now())]);
  }
  for (const event of outstanding) print(`${paint.red('✗ missing')}   ${event.eventType}  ${event.id}`);
  const complete = sent.every((event) => event.intact);
  print(
    complete
      ? paint.green('All five arrived, verified, byte for byte.')
      : paint.red('The demo is not complete.'),
  );
  return complete;
}

function demoLine(event, arrival, paint) {
  const mark = event.intact
    ? paint.green('✓ verified')
    : paint.red(arrival.verified ? '✗ changed ' : '✗ refused ');
  // The stored time and the arrival are both read on this machine.
  const waitedMs = Math.max(0, arrival.arrivedMs - event.acceptedMs);
  return `${mark}  ${paint.bold(event.eventType.padEnd(20))}  ${arrival.body.length} bytes  ${arrival.deliveryId}  ${waitedMs} ms after it was accepted`;
}

/** The first example of each named event, as the bytes that stand in the package. */
function readExamples(names) {
  const text = readFileSync(createRequire(import.meta.url).resolve('@octokit/webhooks-examples'), 'utf8');
  const wanted = new Map(names.map((name) => [name, null]));
  for (const definition of membersOf(text, text.indexOf('['))) {
    const parts = new Map([...membersOf(text, definition.start)].map((part) => [part.name, part]));
    const name = JSON.parse(text.slice(parts.get('name').start, parts.get('name').end));
    if (!wanted.has(name)) continue;
    const [example] = membersOf(text, parts.get('examples').start);
    wanted.set(name, text.slice(example.start, example.end));
  }
  return [...wanted].map(([name, payload]) => ({ eventType: `github.${name}`, payload }));
}

function timeout(ms) {
  return new Promise((settle) => setTimeout(settle, Math.max(0, ms)).unref());
}
