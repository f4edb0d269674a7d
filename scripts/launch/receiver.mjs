import { createServer } from 'node:http';
import { connect } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { connectApi } from './waybill-api.mjs';

const KIND = 'npm run receiver';
const BODY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Starts an HTTP server on loopback, registers it as an endpoint and verifies every arrival by its raw bytes. Calls
 * `onArrival` with what came; answers 204, 401 to what does not verify, and 500 to the first `failFirst` arrivals.
 */
export async function startReceiver({ apiUrl, key, port = 0, failFirst = 0, onArrival }) {
  const api = connectApi(apiUrl, key);
  let learnSecret;
  // An arrival can be faster than the answer that carries the secret.
  const secret = new Promise((settle) => (learnSecret = settle));
  let failuresLeft = failFirst;
  const answer = async (request, response) => {
    try {
      const body = await readBody(request);
      const arrival = judge(request.headers, body, await secret);
      const status = !arrival.verified ? 401 : failuresLeft > 0 ? 500 : 204;
      if (status === 500) failuresLeft -= 1;
      response.writeHead(status).end();
      onArrival({ ...arrival, status });
    } catch {
      response.writeHead(400).end();
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  await listen(server, port);
  const url = `http://127.0.0.1:${server.address().port}/`;
  try {
    await removeLeftovers(api);
    const endpoint = await api.createEndpoint({ url, description: `${KIND} (process ${process.pid})` });
    learnSecret(endpoint.secret);
    return {
      name: 'the receiver',
      url,
      endpointId: endpoint.id,
      api,
      stop: () => stop(api, endpoint.id, server),
    };
  } catch (error) {
    server.close();
    throw error;
  }
}

async function stop(api, endpointId, server) {
  try {
    await api.deleteEndpoint(endpointId, 3_000);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function judge(headers, body, secret) {
  const arrival = {
    verified: false,
    reason: null,
    eventType: headers['waybill-event-type'] ?? '?',
    eventId: headers['waybill-event-id'] ?? '?',
    deliveryId: headers['webhook-id'] ?? '?',
    attempt: headers['waybill-attempt'] ?? '?',
    body,
    arrivedMs: Date.now(),
  };
  try {
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return { ...arrival, verified: true };
  } catch (error) {
    return { ...arrival, reason: error.message };
  }
}

async function readBody(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error('the body is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function listen(server, port) {
  return new Promise((settle, fail) => {
    server.once('error', (error) => {
      fail(
        error.code === 'EADDRINUSE' ? new Error(`Port ${port} is taken: choose another with --port`) : error,
      );
    });
    server.listen(port, '127.0.0.1', settle);
  });
}

// A receiver that was killed left its endpoint; one that still listens is somebody's other terminal.
async function removeLeftovers(api) {
  for (const endpoint of await api.listEndpoints()) {
    if (!endpoint.description?.startsWith(KIND)) continue;
    if (await isListening(new URL(endpoint.url))) continue;
    await api.deleteEndpoint(endpoint.id);
  }
}

function isListening(url) {
  if (url.hostname !== '127.0.0.1') return Promise.resolve(true);
  return new Promise((settle) => {
    const socket = connect({ host: '127.0.0.1', port: Number(url.port) });
    socket.once('error', () => settle(false));
    socket.once('connect', () => {
      socket.destroy();
      settle(true);
    });
  });
}
