import type { Request } from 'express';

interface RouteLayer {
  readonly route?: { readonly methods: Readonly<Record<string, boolean>> };
  match(path: string): boolean;
}

/** The methods that some route takes on the request's path; none when the path is not known at all. */
export function allowedMethods(request: Request): string[] {
  const { stack } = (request.app as unknown as { router: { stack: readonly RouteLayer[] } }).router;
  const methods = stack.flatMap((layer) =>
    layer.route && layer.match(request.path) ? Object.keys(layer.route.methods) : [],
  );
  const names = new Set(methods.filter((method) => method !== '_all').map((method) => method.toUpperCase()));
  if (names.has('GET')) names.add('HEAD');
  return [...names].toSorted();
}
