import type { IncomingMessage, ServerResponse } from 'node:http';

/** A greeted request on its way to its one answer, whichever road it came by. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** What stands behind the question mark of its target, by name. */
  readonly query: object;
  /** The route as metrics and logs name it. */
  readonly route: string;
}
