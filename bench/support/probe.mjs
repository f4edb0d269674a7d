import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { onCleanUp } from './cleanup.mjs';
import { EVENT_TYPE } from './seed.mjs';

/**
 * A producer and its receiver in one process, on one clock: posts events through the api and sees each arrive.
 * `publish` resolves with the milliseconds from the 201 to the arrival of each event; those that have not come within
 * `patienceMs` of the last 201 count as that long.
 */
export async function startProbe() {
  const arrivedAt = new Map();
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const { n } = JSON.parse(body);
      if (!arrivedAt.has(n)) arrivedAt.set(n, performance.now());
      response.writeHead(200, { 'content-length': '0' }).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = onCleanUp(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  let sent = 0;
  return {
    url: `http://127.0.0.1:${server.address().port}/hook`,
    stop,
    async publish({ apiUrl, key, perSecond, ms, patienceMs }) {
      const acceptedAt = new Map();
      const startedAt = performance.now();
      const first = sent;
      for (let count = 0; (count * 1000) / perSecond < ms; count += 1) {
        await delay(Math.max(0, startedAt + (count * 1000) / perSecond - performance.now()));
        const n = sent;
        sent += 1;
        await post(apiUrl, key, n);
        acceptedAt.set(n, performance.now());
      }
      const deadline = performance.now() + patienceMs;
      while (performance.now() < deadline && !allArrived(acceptedAt, arrivedAt)) await delay(5);
      return Array.from({ length: sent - first }, (_, place) => {
        const accepted = acceptedAt.get(first + place);
        return Math.max(0, (arrivedAt.get(first + place) ?? performance.now()) - accepted);
      });
    },
  };
}

function allArrived(acceptedAt, arrivedAt) {
  return [...acceptedAt.keys()].every((n) => arrivedAt.has(n));
}

async function post(apiUrl, key, n) {
  const response = await fetch(`${apiUrl}/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ event_type: EVENT_TYPE, payload: { n } }),
  });
  if (response.status !== 201) throw new Error(`the api answered ${response.status}`);
  await response.arrayBuffer();
}
