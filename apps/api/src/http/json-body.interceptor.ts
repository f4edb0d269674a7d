import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import type { Observable } from 'rxjs';
import { AppError, type Config } from '#runtime';
import { ApiContext } from '../api-context.js';
import { readBody } from './read-body.js';
import { stateOf } from './request-state.js';
import { OBJECT_LIMITS, scanJson, type ScanLimits } from './scan-json.js';

/** What a route's body is: a small object that is parsed, or events whose bytes the controller reads itself. */
export type BodyKind = 'object' | 'event' | 'batch';

const BODY_KIND = 'waybill:body-kind';
const OBJECT_BYTES_MAX = 65_536;

/** All of a small object is parsed, so none of it may be given twice; it has no room for more items. */
const SMALL_OBJECT_LIMITS: ScanLimits = {
  ...OBJECT_LIMITS,
  itemsMax: OBJECT_BYTES_MAX,
  captureDepth: OBJECT_LIMITS.depthMax,
};

/** What the envelope around a payload may take. */
const ENVELOPE_BYTES_MAX = 65_536;

/** Marks a route that takes a JSON body, and how large it may be. */
export const JsonBody = (kind: BodyKind) => SetMetadata(BODY_KIND, kind);

/** The raw bytes of the body of a route marked with JsonBody. */
export const BodyBytes = createParamDecorator((_: unknown, context: ExecutionContext): Buffer => {
  return stateOf(context.switchToHttp().getRequest<Request>()).body ?? Buffer.alloc(0);
});

/** Reads the body after the key was checked and before any parameter is. */
@Injectable()
export class JsonBodyInterceptor implements NestInterceptor {
  constructor(
    private readonly reflector: Reflector,
    private readonly context: ApiContext,
  ) {}

  async intercept(execution: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const kind = this.reflector.get<BodyKind | undefined>(BODY_KIND, execution.getHandler());
    if (kind !== undefined) await this.read(kind, execution.switchToHttp().getRequest<Request>());
    return next.handle();
  }

  private async read(kind: BodyKind, request: Request): Promise<void> {
    const bytes = await readBody(request, bytesMax(kind, this.context.config));
    stateOf(request).body = bytes;
    if (kind !== 'object') return;
    if (scanJson(bytes, SMALL_OBJECT_LIMITS).kind !== 'object') {
      const details = [{ field: 'body', reason: 'must be an object' }];
      throw new AppError('validation_failed', 'The body must be a JSON object.', { details });
    }
    request.body = JSON.parse(bytes.toString('utf8')) as unknown;
  }
}

function bytesMax(kind: BodyKind, config: Config): number {
  if (kind === 'object') return OBJECT_BYTES_MAX;
  return kind === 'event' ? config.eventBytesMax + ENVELOPE_BYTES_MAX : config.batchBytesMax;
}
