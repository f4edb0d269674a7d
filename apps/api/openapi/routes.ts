import {
  HTTP_CODE_METADATA,
  METHOD_METADATA,
  PATH_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import { RequestMethod } from '@nestjs/common';
import { createLogger } from '#runtime';
import type { Scope } from '#tenants';
import type { ApiContext } from '../src/api-context.js';
import { AppModule } from '../src/app.module.js';
import { OPERATOR, PUBLIC, SCOPE } from '../src/auth/require-scope.js';
import { createApplication } from '../src/create-server.js';
import { readCreation } from '../src/creation/creation.js';
import { BODY_KIND, type BodyKind } from '../src/http/json-body.interceptor.js';
import { OPERATION, type OperationText } from '../src/http/operation.js';
import { createPublishRoad } from '../src/publish/publish-road.js';
import { PUBLISH_OPERATIONS } from '../src/publish/publish-operations.js';

/** A class whose decorators are read. */
export type DtoClass = new () => object;

/** One route as its code has it. */
export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** In the form of OpenAPI: /v1/events/{id}. */
  readonly path: string;
  readonly text: OperationText;
  readonly status: number;
  readonly isPublic: boolean;
  /** Whether it takes the operator's key in place of a tenant's. */
  readonly isOperators: boolean;
  /** Null for a route that takes no tenant's key. */
  readonly scope: Scope | null;
  /** Whether its handler asks for a Creation: what it makes is made once under an Idempotency-Key. */
  readonly createsOnce: boolean;
  /** Names in the path, in order. */
  readonly pathNames: readonly string[];
  /** Headers of the request that the handler takes, in lower case. */
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  readonly query: DtoClass | null;
  readonly body: DtoClass | null;
  readonly takesJson: boolean;
  readonly mayLeaveOutBody: boolean;
  /** Where the handler stands: a method of a class, or a function of the publish road. */
  readonly handler: { readonly className: string | null; readonly name: string };
}

/** The routes of the api: those that controllers describe and those of the publish road. Throws where one is not described. */
export async function readRoutes(): Promise<readonly Route[]> {
  const controllers = (AppModule.around(emptyContext()).controllers ?? []) as (new (
    ...args: never[]
  ) => object)[];
  const routes = [...controllers.flatMap(controllerRoutes), ...PUBLISH_OPERATIONS.map(publishRoute)];
  await compareWithServer(routes);
  return routes;
}

/** The routes of the application as it is served, ahead of Express and on it, as `get /v1/events/{id}`. */
export async function readServedRoutes(): Promise<readonly string[]> {
  const context = emptyContext();
  const { app, instance } = await createApplication(context, createPublishRoad(context));
  const { stack } = (
    instance as unknown as {
      router: { stack: readonly { route?: { path: string; methods: Record<string, boolean> } }[] };
    }
  ).router;
  const served = stack.flatMap(({ route }) =>
    route === undefined
      ? []
      : Object.keys(route.methods).map((method) => `${method} ${toOpenApiPath(route.path)}`),
  );
  await app.close();
  return served;
}

async function compareWithServer(routes: readonly Route[]): Promise<void> {
  const served = await readServedRoutes();
  const described = routes.map(({ method, path }) => `${method} ${path}`);
  const missing = served.filter((route) => !described.includes(route));
  const surplus = described.filter((route) => !served.includes(route));
  if (missing.length > 0) throw new Error(`served but not described: ${missing.join(', ')}`);
  if (surplus.length > 0) throw new Error(`described but not served: ${surplus.join(', ')}`);
}

/** Routes are made without a database; only answering one would need more. */
function emptyContext(): ApiContext {
  // Any operator's key will do: the document describes the operator's routes whether they are served somewhere or not.
  const config = { operatorKeyDigests: [Buffer.alloc(32)] };
  return { logger: createLogger('openapi', 'silent'), config } as unknown as ApiContext;
}

function controllerRoutes(controller: new (...args: never[]) => object): Route[] {
  const prefix = Reflect.getMetadata(PATH_METADATA, controller) as string;
  const prototype = controller.prototype as Record<string, unknown>;
  return Object.getOwnPropertyNames(prototype).flatMap((name) => {
    const handler = prototype[name];
    if (name === 'constructor' || typeof handler !== 'function') return [];
    const path = Reflect.getMetadata(PATH_METADATA, handler) as string | undefined;
    return path === undefined ? [] : [controllerRoute(controller, name, handler, joinPath(prefix, path))];
  });
}

function controllerRoute(
  controller: new (...args: never[]) => object,
  name: string,
  handler: object,
  path: string,
): Route {
  const method = RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as number]!.toLowerCase();
  const text = Reflect.getMetadata(OPERATION, handler) as OperationText | undefined;
  if (text === undefined) {
    throw new Error(
      `${method.toUpperCase()} ${path} is not described: put @Operation({ id, summary }) above ${controller.name}.${name}`,
    );
  }
  const isPublic = Reflect.getMetadata(PUBLIC, controller) === true;
  const isOperators = Reflect.getMetadata(OPERATOR, controller) === true;
  const given = readParameters(controller, name);
  const named = (kind: number) =>
    given.filter((parameter) => parameter.kind === kind).flatMap(({ data }) => data ?? []);
  const createsOnce = given.some(({ factory }) => factory === readCreation);
  const bodyKind = Reflect.getMetadata(BODY_KIND, handler) as BodyKind | undefined;
  const dto = (kind: number) => given.find((parameter) => parameter.kind === kind)?.type ?? null;
  return {
    method: method as Route['method'],
    path,
    text,
    status:
      (Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined) ??
      (method === 'post' ? 201 : 200),
    isPublic,
    isOperators,
    scope:
      isPublic || isOperators
        ? null
        : ((Reflect.getMetadata(SCOPE, handler) as Scope | undefined) ?? 'admin'),
    pathNames: [...path.matchAll(/\{(\w+)\}/g)].map(([, found]) => found!),
    createsOnce,
    requestHeaders: [
      ...(createsOnce ? ['idempotency-key'] : []),
      ...named(KIND.headers).map((header) => header.toLowerCase()),
    ],
    responseHeaders: createsOnce ? ['idempotency-replayed'] : [],
    query: dto(KIND.query),
    body: dto(KIND.body),
    takesJson: bodyKind !== undefined,
    mayLeaveOutBody: bodyKind === 'object or nothing',
    handler: { className: controller.name, name },
  };
}

/** How Nest counts the kinds of a handler's parameters. */
const KIND = { body: 3, query: 4, headers: 6 };

interface Parameter {
  readonly kind: number;
  readonly data: string | undefined;
  /** What makes the value, for a parameter with a decorator of our own. */
  readonly factory: unknown;
  readonly type: DtoClass | null;
}

function readParameters(controller: new (...args: never[]) => object, name: string): Parameter[] {
  const types = (Reflect.getMetadata('design:paramtypes', controller.prototype as object, name) ??
    []) as DtoClass[];
  const found = (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) ?? {}) as Record<
    string,
    { index: number; data?: string; factory?: unknown }
  >;
  return Object.entries(found).map(([key, { index, data, factory }]) => ({
    kind: Number(key.split(':')[0]),
    data,
    factory,
    type: types[index] ?? null,
  }));
}

function publishRoute(operation: (typeof PUBLISH_OPERATIONS)[number]): Route {
  return {
    method: 'post',
    path: operation.route,
    text: operation,
    status: operation.status,
    isPublic: false,
    isOperators: false,
    scope: operation.scope,
    // The publish road has a way of its own.
    createsOnce: false,
    pathNames: [],
    requestHeaders: operation.requestHeaders,
    responseHeaders: operation.responseHeaders,
    query: null,
    body: null,
    takesJson: true,
    mayLeaveOutBody: false,
    handler: { className: null, name: operation.id },
  };
}

function joinPath(prefix: string, path: string): string {
  const parts = [prefix, path].flatMap((part) => part.split('/')).filter((part) => part !== '');
  return toOpenApiPath(`/${parts.join('/')}`);
}

function toOpenApiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}
