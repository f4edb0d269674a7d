import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import type { Scope } from '#tenants';
import { ApiContext } from '../api-context.js';
import { stateOf } from '../http/request-state.js';
import { refuseQuery, requireScope } from './authenticate.js';
import { assertOperator } from './assert-operator.js';
import { OPERATOR, PUBLIC, SCOPE } from './require-scope.js';

/**
 * Lets a request through when its bearer key is valid now and has the scope of the route, or is the operator's where the
 * route is.
 */
@Injectable()
export class KeyGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly context: ApiContext,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    if (this.reflector.get<boolean | undefined>(PUBLIC, execution.getClass())) return true;
    const request = execution.switchToHttp().getRequest<Request>();
    if (this.reflector.get<boolean | undefined>(OPERATOR, execution.getClass())) {
      assertOperator(request.headers.authorization, this.context.config.operatorKeyDigests);
    } else {
      const holder = await this.context.intake.authenticate(request);
      requireScope(holder, this.reflector.get<Scope | undefined>(SCOPE, execution.getHandler()) ?? 'admin');
      stateOf(request).holder = holder;
    }
    if (!takesQuery(execution)) refuseQuery(request.query);
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
