import { VERSION, type ErrorCode } from '#runtime';
import { RESPONSE_HEADERS } from './headers.js';
import { openKit } from './kit.js';
import { operationObject, tagOf } from './operation-object.js';
import { readSources } from './program.js';
import { problemExamples } from './responses.js';
import { readRoutes, type Route } from './routes.js';
import type { Schema } from './schema.js';
import { shareResponses } from './share-responses.js';

/** What each group of operations is about; a new collection needs its line. */
const TAGS: Readonly<Record<string, string>> = {
  events: 'What happened, published once and owed to every endpoint that subscribes to its type.',
  consumers: 'Customers of the tenant, with endpoints and events of their own.',
  endpoints: 'Where deliveries go, and how.',
  deliveries: 'What is owed to one endpoint for one event, with its attempts.',
  'dead letters': 'Deliveries that were given up, until somebody replays them.',
  keys: 'API keys, made and ended by a key with the scope `keys`.',
  tenants: "The platform's tenants, for its operator: served only where an operator's key is configured.",
  machines: 'Health, metrics and this reference. No API key.',
};

const DESCRIPTION = `Webhook delivery from a transactional outbox. Once a publish is answered with 2xx, the event and every
delivery owed for it are stored, in one commit.

Bodies are JSON in UTF-8, uncompressed, at most 100 levels deep, without a field given twice. Unknown fields and unknown
query parameters are refused. Every refusal is a problem (RFC 9457) with a stable \`code\`; \`x-codes\` lists those that an
operation can have. An id of another tenant answers exactly as one that does not exist. Enums of answers, and codes, may
get more members. A \`GET\` also answers \`HEAD\`; a path that exists answers another method with 405 and \`Allow\`.`;

/** An OpenAPI document. */
export type OpenapiDocument = Readonly<Record<string, unknown>> & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
};

/** The OpenAPI document of the api, written from its code. Throws with every fault it finds, each saying what to add. */
export async function writeDocument(): Promise<OpenapiDocument> {
  const routes = await readRoutes();
  const kit = openKit(readSources());
  const { components, faults, usedWords, words } = kit.context;
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method]: operationObject(kit, route) };
    if (TAGS[tagOf(route)] === undefined) {
      faults.push(`${route.path}: say in apps/api/openapi/document.ts what ${tagOf(route)} are`);
    }
  }
  for (const name of Object.keys(words)) {
    if (!usedWords.has(name))
      faults.push(`the word ${name} stands for no field: take it out of apps/api/openapi/words/`);
  }
  if (faults.length > 0) throw new Error(`The API is not described:\n  - ${faults.join('\n  - ')}`);
  narrowCodes(components, kit.usedCodes);
  const shared = shareResponses(sortedPaths(routes, paths));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Waybill',
      version: VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The api that serves this document.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: shared.paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'wb_…',
          description: 'An API key with the scope that `x-required-scope` names, or with `admin`.',
        },
        operatorKey: {
          type: 'http',
          scheme: 'bearer',
          description:
            "One of the operator's keys, of `WAYBILL_OPERATOR_KEY`; without any there are no such routes.",
        },
        metricsToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The token of `WAYBILL_METRICS_TOKEN`, where the operator set one.',
        },
      },
      headers: Object.fromEntries(
        Object.values(RESPONSE_HEADERS).map(({ name, ...header }) => [name, header]),
      ),
      responses: shared.responses,
      examples: problemExamples(kit.usedCodes),
      schemas: sorted(components),
    },
  };
}

/** Of all codes those that an answer can have: an operation's, and what is said where there is none. */
function narrowCodes(components: Map<string, Schema>, used: ReadonlySet<ErrorCode>): void {
  const problem = components.get('Problem')!;
  const codes = [...used, 'route_not_found', 'method_not_allowed'].toSorted();
  const code = { ...problem.properties!['code'], enum: codes };
  components.set('Problem', { ...problem, properties: { ...problem.properties, code } });
}

function sortedPaths(routes: readonly Route[], paths: OpenapiDocument['paths']): OpenapiDocument['paths'] {
  const tags = Object.keys(TAGS);
  const place = (path: string) => tags.indexOf(tagOf(routes.find((route) => route.path === path)!));
  return Object.fromEntries(
    Object.entries(paths).toSorted(([one], [other]) => place(one) - place(other) || (one < other ? -1 : 1)),
  );
}

function sorted(components: ReadonlyMap<string, Schema>): Record<string, Schema> {
  return Object.fromEntries([...components].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
