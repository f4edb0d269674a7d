type Responses = Readonly<Record<string, object>>;

/** Paths whose most common refusal of each status stands once in the document, and those refusals by name. */
export interface SharedResponses {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly responses: Responses;
}

/** Puts the refusals that most operations have in common in one place: a third of the document is left. */
export function shareResponses(paths: SharedResponses['paths']): SharedResponses {
  const responses: Record<string, object> = {};
  for (const [status, variants] of countVariants(paths)) {
    const [text, uses] = [...variants].toSorted(([, one], [, other]) => other - one)[0]!;
    if (uses > 1) responses[`Problem${status}`] = JSON.parse(text) as object;
  }
  const shared = new Map(
    Object.entries(responses).map(([name, response]) => [JSON.stringify(response), name]),
  );
  const refer = (response: object): object => {
    const name = shared.get(JSON.stringify(response));
    return name === undefined ? response : { $ref: `#/components/responses/${name}` };
  };
  return {
    responses,
    paths: mapOperations(paths, (operation) => ({
      ...operation,
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, response]) => [status, refer(response)]),
      ),
    })),
  };
}

function countVariants(paths: SharedResponses['paths']): Map<string, Map<string, number>> {
  const counts = new Map<string, Map<string, number>>();
  mapOperations(paths, (operation) => {
    for (const [status, response] of Object.entries(operation.responses)) {
      if (!('x-codes' in response)) continue;
      const variants = counts.get(status) ?? new Map<string, number>();
      const text = JSON.stringify(response);
      counts.set(status, variants.set(text, (variants.get(text) ?? 0) + 1));
    }
    return operation;
  });
  return counts;
}

function mapOperations(
  paths: SharedResponses['paths'],
  change: (operation: { responses: Responses }) => object,
): SharedResponses['paths'] {
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([method, operation]) => [
          method,
          change(operation as { responses: Responses }),
        ]),
      ),
    ]),
  );
}
