import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';

/** A whole answer. `body` is the parsed JSON, or undefined where the answer is not JSON. */
export interface ApiResponse<Body> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Body;
  readonly text: string;
  readonly raw: Buffer;
}

type JsonObject = Record<string, unknown>;
type RequestBody = Buffer | string | object;

export interface PublishOptions {
  readonly idempotencyKey?: string;
  readonly consumer?: string;
  readonly notBefore?: string;
  readonly metadata?: object;
  readonly headers?: OutgoingHttpHeaders;
}

/** One tenant's view of the API. A Buffer or string body goes out as it is, an object as JSON. Nothing is retried. */
export interface ApiClient {
  get<Body = JsonObject>(path: string, headers?: OutgoingHttpHeaders): Promise<ApiResponse<Body>>;
  post<Body = JsonObject>(
    path: string,
    body?: RequestBody,
    headers?: OutgoingHttpHeaders,
  ): Promise<ApiResponse<Body>>;
  patch<Body = JsonObject>(
    path: string,
    body?: RequestBody,
    headers?: OutgoingHttpHeaders,
  ): Promise<ApiResponse<Body>>;
  delete<Body = JsonObject>(
    path: string,
    body?: RequestBody,
    headers?: OutgoingHttpHeaders,
  ): Promise<ApiResponse<Body>>;
  /** POST /v1/events; a Buffer or string payload lands in the envelope byte for byte, so it must be JSON text. */
  publish<Body = JsonObject>(
    eventType: string,
    payload: RequestBody,
    options?: PublishOptions,
  ): Promise<ApiResponse<Body>>;
  /** Closes the connections that `keepAlive` left open. */
  close(): void;
}

export interface ClientOptions {
  /** Reuse connections, for tests with many requests. Off by default: a server that stops may close a reused one. */
  readonly keepAlive?: boolean;
  readonly timeoutMs?: number;
}

/** Makes a client for the API at `url` with a bearer key; null sends no Authorization header. */
export function createClient(url: string, key: string | null, options: ClientOptions = {}): ApiClient {
  const agent = new Agent({ keepAlive: options.keepAlive ?? false });
  const timeoutMs = options.timeoutMs ?? 30_000;
  const call = <Body>(
    method: string,
    path: string,
    body: RequestBody | undefined,
    headers: OutgoingHttpHeaders = {},
  ) =>
    send<Body>(
      new URL(path, url),
      {
        method,
        agent,
        timeoutMs,
        headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
      },
      body,
    );
  return {
    get: (path, headers) => call('GET', path, undefined, headers),
    post: (path, body, headers) => call('POST', path, body, headers),
    patch: (path, body, headers) => call('PATCH', path, body, headers),
    delete: (path, body, headers) => call('DELETE', path, body, headers),
    publish: (eventType, payload, publishOptions = {}) =>
      call('POST', '/v1/events', eventBody(eventType, payload, publishOptions), {
        ...(publishOptions.idempotencyKey === undefined
          ? {}
          : { 'idempotency-key': publishOptions.idempotencyKey }),
        ...publishOptions.headers,
      }),
    close: () => agent.destroy(),
  };
}

function eventBody(eventType: string, payload: RequestBody, options: PublishOptions): Buffer {
  const rest = JSON.stringify({
    event_type: eventType,
    consumer: options.consumer,
    not_before: options.notBefore,
    metadata: options.metadata,
  });
  return Buffer.concat([Buffer.from(`${rest.slice(0, -1)},"payload":`), toBytes(payload), Buffer.from('}')]);
}

function toBytes(body: RequestBody): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

interface Call {
  readonly method: string;
  readonly agent: Agent;
  readonly timeoutMs: number;
  readonly headers: OutgoingHttpHeaders;
}

function send<Body>(url: URL, call: Call, body: RequestBody | undefined): Promise<ApiResponse<Body>> {
  const bytes = body === undefined ? undefined : toBytes(body);
  const headers: OutgoingHttpHeaders =
    bytes === undefined
      ? call.headers
      : { 'content-type': 'application/json', 'content-length': bytes.length, ...call.headers };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: call.method, agent: call.agent, headers }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      // An answer cut short ends in 'error' (aborted) and must not look like a whole one.
      incoming.on('error', reject);
      incoming.on('end', () => {
        const raw = Buffer.concat(chunks);
        try {
          resolve(readResponse<Body>(incoming.statusCode ?? 0, incoming.headers, raw));
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.setTimeout(call.timeoutMs, () =>
      outgoing.destroy(new Error(`${call.method} ${url.pathname}: no answer within ${call.timeoutMs} ms`)),
    );
    outgoing.on('error', reject);
    outgoing.end(bytes);
  });
}

function readResponse<Body>(status: number, headers: IncomingHttpHeaders, raw: Buffer): ApiResponse<Body> {
  const text = raw.toString('utf8');
  const isJson = /[/+]json\b/.test(headers['content-type'] ?? '') && text !== '';
  const body: Body = isJson ? JSON.parse(text) : undefined;
  return { status, headers, body, text, raw };
}
