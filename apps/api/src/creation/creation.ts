import { createParamDecorator, SetMetadata, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { IdempotencyUse } from '#outbox';
import { idempotencyKeyOf } from '../publish/idempotency-key.js';
import { fingerprintCreation } from './fingerprint-creation.js';

/** A request that creates something, as far as creating it once is concerned. */
export interface Creation {
  /** Null when it brings no Idempotency-Key: then every request creates. */
  readonly idempotency: IdempotencyUse | null;
  /** Says in the answer that what it shows was created by an earlier request. */
  markReplayed(): void;
}

/** Reads a Creation off a request; throws `invalid_idempotency_key`. */
export function readCreation(_: unknown, execution: ExecutionContext): Creation {
  const request = execution.switchToHttp().getRequest<Request>();
  const response = execution.switchToHttp().getResponse<Response>();
  const key = idempotencyKeyOf(request);
  return {
    idempotency: key === null ? null : { key, fingerprint: fingerprintOf(request) },
    markReplayed: () => void response.setHeader('idempotency-replayed', 'true'),
  };
}

function fingerprintOf(request: Request): Buffer {
  const { path: route } = request.route as { path: string };
  return fingerprintCreation({
    method: request.method,
    route,
    params: request.params,
    body: request.body as unknown,
  });
}

/** The parameter by which a route takes part: what it makes goes through `context.createOnce` with it. */
export const FromCreation = createParamDecorator(readCreation);

export const CREATES_NOTHING = 'waybill:creates-nothing';

/** Marks a POST route that takes no Idempotency-Key, and says why it needs none. */
export const CreatesNothing = (reason: string) => SetMetadata(CREATES_NOTHING, reason);
