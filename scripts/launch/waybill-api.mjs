import { setTimeout as delay } from 'node:timers/promises';

const REQUEST_MS = 10_000;

/** A refusal by the API: its status, and its problem document as text. */
export class ApiRefusal extends Error {
  constructor(method, path, status, text) {
    const hint = status === 401 ? ' (the key is refused: is it the key of this installation?)' : '';
    super(`${method} ${path} answered ${status}${hint}: ${text.slice(0, 500)}`);
    this.status = status;
  }
}

/** The few calls that the receiver and the demo make. `send` takes a body as JSON text and sends it as it is. */
export function connectApi(baseUrl, key) {
  const send = async (method, path, jsonText, timeoutMs = REQUEST_MS) => {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(jsonText ? { 'content-type': 'application/json' } : {}),
      },
      body: jsonText,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (!response.ok) throw new ApiRefusal(method, path, response.status, text);
    return text === '' ? null : JSON.parse(text);
  };
  return {
    send,
    createEndpoint: (endpoint) => send('POST', '/v1/endpoints', JSON.stringify(endpoint)),
    deleteEndpoint: (id, timeoutMs) => send('DELETE', `/v1/endpoints/${id}`, undefined, timeoutMs),
    listEndpoints: () => listAll(send, '/v1/endpoints'),
  };
}

/** Resolves once the API answers at all; rejects, saying what to do, when it does not within `timeoutMs`. */
export async function waitForApi(baseUrl, timeoutMs, onWait = () => undefined) {
  const deadline = performance.now() + timeoutMs;
  let told = false;
  for (;;) {
    try {
      await fetch(baseUrl, { signal: AbortSignal.timeout(2_000) });
      return;
    } catch {
      if (performance.now() > deadline) {
        throw new Error(`No Waybill answers at ${baseUrl}. Start it in another terminal with: npm start`);
      }
      if (!told) onWait();
      told = true;
      await delay(200);
    }
  }
}

async function listAll(send, path) {
  const found = [];
  let cursor;
  do {
    const page = await send(
      'GET',
      `${path}?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
    );
    found.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}
