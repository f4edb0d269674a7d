import 'reflect-metadata';

import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';

import type { ApiContext } from '../../apps/api/src/api-context.js';
import { AppModule } from '../../apps/api/src/app.module.js';
import { CREATES_NOTHING, readCreation } from '../../apps/api/src/creation/creation.js';

/** A route as its controller declares it. */
export interface DeclaredRoute {
  /** `POST /v1/events/:id/cancel` */
  readonly name: string;
  readonly method: string;
  /** Whether it takes an Idempotency-Key. */
  readonly createsOnce: boolean;
  /** Why it needs none. */
  readonly createsNothing: string | null;
}

type Handler = (...parameters: never[]) => unknown;

/** The operator's routes are there where a key of theirs is. */
const WITH_OPERATOR = { config: { operatorKeyDigests: [Buffer.alloc(32)] } } as unknown as ApiContext;

/** Every route of the api's controllers, off their metadata: what Nest serves, and no more. */
export function declaredRoutes(): DeclaredRoute[] {
  const { controllers = [] } = AppModule.around(WITH_OPERATOR);
  return controllers.flatMap((controller) => {
    const prefix = Reflect.getMetadata(PATH_METADATA, controller) as string;
    return Object.getOwnPropertyNames(controller.prototype).flatMap((property) => {
      const handler = (controller.prototype as Record<string, Handler>)[property]!;
      const verb = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod | undefined;
      if (verb === undefined) return [];
      const path = Reflect.getMetadata(PATH_METADATA, handler) as string;
      const method = RequestMethod[verb];
      return [
        {
          name: `${method} /${[prefix, path].filter((part) => part !== '/').join('/')}`,
          method,
          createsOnce: takesCreation(controller, property),
          createsNothing: (Reflect.getMetadata(CREATES_NOTHING, handler) as string | undefined) ?? null,
        },
      ];
    });
  });
}

function takesCreation(controller: object, property: string): boolean {
  const parameters: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, property);
  return Object.values(parameters ?? {}).some(
    (parameter: { readonly factory?: unknown }) => parameter.factory === readCreation,
  );
}
