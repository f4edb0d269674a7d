import { createParamDecorator, SetMetadata, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { KeyHolder, Scope } from '#tenants';
import { stateOf } from '../http/request-state.js';

export const SCOPE = 'waybill:scope';
export const PUBLIC = 'waybill:public';
export const OPERATOR = 'waybill:operator';

/** The scope a key must have for a route; a route that names none is for `admin` only. */
export const RequireScope = (scope: Scope) => SetMetadata(SCOPE, scope);

/** Marks a controller that answers without a key: health, metrics and the reference, nothing else. */
export const Public = () => SetMetadata(PUBLIC, true);

/** Marks a controller that is the platform operator's: it takes the operator's key and no key of a tenant. */
export const Operator = () => SetMetadata(OPERATOR, true);

/** Whose key came with the request. */
export const CurrentKey = createParamDecorator((_: unknown, context: ExecutionContext): KeyHolder => {
  return stateOf(context.switchToHttp().getRequest<Request>()).holder!;
});
