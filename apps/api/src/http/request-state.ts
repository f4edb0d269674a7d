import type { Request } from 'express';
import type { KeyHolder } from '#tenants';

/** What our own steps put beside a request on its way. */
export interface RequestState {
  requestId: string;
  holder?: KeyHolder;
  body?: Buffer;
}

const STATES = new WeakMap<object, RequestState>();

/** The state of a request; every request has one from its first middleware on. */
export function stateOf(request: Request): RequestState {
  let state = STATES.get(request);
  if (state === undefined) {
    state = { requestId: 'req_unknown' };
    STATES.set(request, state);
  }
  return state;
}
