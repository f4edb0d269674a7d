import {
  Injectable,
  SetMetadata,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import type { Observable } from 'rxjs';
import { AppError } from '#runtime';
import { readBody } from './read-body.js';
import { OBJECT_LIMITS, scanJson, type ScanLimits } from './scan-json.js';

const BODY_KIND = 'waybill:body-kind';
const OBJECT_BYTES_MAX = 65_536;

/** All of a small object is parsed, so none of it may be given twice; it has no room for more items. */
const SMALL_OBJECT_LIMITS: ScanLimits = {
  ...OBJECT_LIMITS,
  itemsMax: OBJECT_BYTES_MAX,
  captureDepth: OBJECT_LIMITS.depthMax,
};

type BodyKind = 'object' | 'optional object';

/** Marks a route that takes a JSON body: a small object. Events, whose bytes matter, do not come this way. */
export const JsonBody = (kind: BodyKind) => SetMetadata(BODY_KIND, kind);

/** Reads the body after the key was checked and before any parameter is. */
@Injectable()
export class JsonBodyInterceptor implements NestInterceptor {
  constructor(private readonly reflector: Reflector) {}

  async intercept(execution: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const kind = this.reflector.get<BodyKind | undefined>(BODY_KIND, execution.getHandler());
    const request = execution.switchToHttp().getRequest<Request>();
    if (kind === 'optional object' && bringsNothing(request)) request.body = {};
    else if (kind !== undefined) await readObject(request);
    return next.handle();
  }
}

function bringsNothing({ headers }: Request): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

async function readObject(request: Request): Promise<void> {
  const bytes = await readBody(request, OBJECT_BYTES_MAX);
  if (scanJson(bytes, SMALL_OBJECT_LIMITS).kind !== 'object') {
    const details = [{ field: 'body', reason: 'must be an object' }];
    throw new AppError('validation_failed', 'The body must be a JSON object.', { details });
  }
  request.body = JSON.parse(bytes.toString('utf8')) as unknown;
}
