import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** One request as it came in; nothing about it was normalised. */
export interface ReceivedRequest {
  /** When its head had arrived: milliseconds since 1970 from a clock that never steps back. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  /** Names and values in the order and spelling of the wire, repeated ones too. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The first value under that name, whatever its case. */
  header(name: string): string | undefined;
  readonly body: Buffer;
  /** The same number for requests that came over the same connection. */
  readonly socketId: number;
  /** How many requests were open here when its head arrived, itself included. */
  readonly openAtOnce: number;
  /** Its `webhook-id`, which is the delivery's id; empty where there is none. */
  readonly deliveryId: string;
}

type Arrival = Omit<ReceivedRequest, 'body'>;

/** What one receiver has seen: the witness that is independent of the product. */
export class RequestLog {
  readonly requests: ReceivedRequest[] = [];
  /** The most requests that were open at the same time here. */
  maxOpen = 0;
  /** The most requests that were open at the same time for one delivery: above 1, someone sent twice at once. */
  maxOpenPerDelivery = 0;
  private readonly openByDelivery = new Map<string, number>();
  private open = 0;
  private readonly socketIds = new WeakMap<Socket, number>();
  private sockets = 0;
  private readonly watchers = new Set<() => void>();

  requestsFor(deliveryId: string): ReceivedRequest[] {
    return this.requests.filter((request) => request.deliveryId === deliveryId);
  }

  /** The ids of all deliveries that arrived at least once, in order of first arrival. */
  uniqueDeliveries(): string[] {
    return [...new Set(this.requests.map(({ deliveryId }) => deliveryId))];
  }

  /** Resolves with the requests once there are `wanted` of them, or once the predicate holds for them. */
  waitFor(
    wanted: number | ((requests: readonly ReceivedRequest[]) => boolean),
    timeoutMs = 20_000,
  ): Promise<readonly ReceivedRequest[]> {
    const reached = (): boolean =>
      typeof wanted === 'number' ? this.requests.length >= wanted : wanted(this.requests);
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (!reached()) return;
        clearTimeout(timer);
        this.watchers.delete(check);
        resolve(this.requests);
      };
      const what = typeof wanted === 'number' ? `${wanted} requests` : `requests such that ${String(wanted)}`;
      const timer = setTimeout(() => {
        this.watchers.delete(check);
        reject(
          new Error(`gave up waiting for ${what} after ${timeoutMs} ms; ${this.requests.length} arrived`),
        );
      }, timeoutMs);
      this.watchers.add(check);
      check();
    });
  }

  /** Notes that a request's head is here; it counts as open until `depart`. */
  arrive(incoming: IncomingMessage): Arrival {
    const headers = pairs(incoming.rawHeaders);
    const header = (name: string): string | undefined =>
      headers.find(([found]) => found.toLowerCase() === name.toLowerCase())?.[1];
    const deliveryId = header('webhook-id') ?? '';
    this.open += 1;
    this.maxOpen = Math.max(this.maxOpen, this.open);
    if (deliveryId !== '') {
      const openOfIt = (this.openByDelivery.get(deliveryId) ?? 0) + 1;
      this.openByDelivery.set(deliveryId, openOfIt);
      this.maxOpenPerDelivery = Math.max(this.maxOpenPerDelivery, openOfIt);
    }
    return {
      at: performance.timeOrigin + performance.now(),
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      headers,
      header,
      socketId: this.socketId(incoming.socket),
      openAtOnce: this.open,
      deliveryId,
    };
  }

  /** Notes that an arrival was answered or broken off. */
  depart({ deliveryId }: Arrival): void {
    this.open -= 1;
    const left = (this.openByDelivery.get(deliveryId) ?? 0) - 1;
    if (left > 0) this.openByDelivery.set(deliveryId, left);
    else this.openByDelivery.delete(deliveryId);
  }

  /** Writes down a request that is whole. */
  record(arrival: Arrival, body: Buffer): ReceivedRequest {
    const request = { ...arrival, body };
    this.requests.push(request);
    for (const check of this.watchers) check();
    return request;
  }

  private socketId(socket: Socket): number {
    const known = this.socketIds.get(socket);
    if (known !== undefined) return known;
    this.sockets += 1;
    this.socketIds.set(socket, this.sockets);
    return this.sockets;
  }
}

function pairs(rawHeaders: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    found.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  return found;
}
