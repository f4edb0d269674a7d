import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { AppError } from '#runtime';
import { authenticateKey, type Scope } from '#tenants';
import { ApiContext } from '../api-context.js';
import { unknownField } from '../http/dto.pipe.js';
import { stateOf } from '../http/request-state.js';
import { PUBLIC, SCOPE } from './require-scope.js';

/** Lets a request through when its bearer key is valid now and has the scope of the route. */
@Injectable()
export class KeyGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly context: ApiContext,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    if (this.reflector.get<boolean | undefined>(PUBLIC, execution.getClass())) return true;
    const request = execution.switchToHttp().getRequest<Request>();
    const holder = await authenticateKey(this.context.readPool, bearerOf(request.headers.authorization));
    const scope = this.reflector.get<Scope | undefined>(SCOPE, execution.getHandler()) ?? 'admin';
    if (!holder.scopes.includes('admin') && !holder.scopes.includes(scope)) {
      throw new AppError('insufficient_scope', `The API key lacks the scope ${scope}.`);
    }
    stateOf(request).holder = holder;
    if (!takesQuery(execution)) refuseQuery(request);
    return true;
  }
}

/** Nest keeps a handler's parameters under "kind:place"; 4 is the query. */
const QUERY_PARAMETER = /^4:/;

function takesQuery(execution: ExecutionContext): boolean {
  const parameters: unknown = Reflect.getMetadata(
    ROUTE_ARGS_METADATA,
    execution.getClass(),
    execution.getHandler().name,
  );
  return Object.keys(parameters ?? {}).some((parameter) => QUERY_PARAMETER.test(parameter));
}

/** A parameter that nobody reads would silently be nothing: `POST /v1/events?not_before=…`. */
function refuseQuery(request: Request): void {
  const names = Object.keys(request.query);
  if (names.length > 0) throw unknownField(names);
}

function bearerOf(header: string | undefined): string {
  const match = /^bearer(?: +(.*))?$/i.exec(header ?? '');
  if (match === null) throw new AppError('authentication_required');
  return match[1] ?? '';
}
