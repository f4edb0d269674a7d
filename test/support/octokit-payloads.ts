import { createRequire } from 'node:module';

/** One real-world payload: the event's name at GitHub (`pull_request`), its place among that name's, its JSON text. */
export interface OctokitPayload {
  readonly name: string;
  readonly number: number;
  readonly bytes: Buffer;
}

interface Definition {
  readonly name: string;
  readonly examples: readonly unknown[];
}

// The package ships one JSON file of definitions, each with its examples as JSON values, so there are no original
// bytes to keep: ours are JSON.stringify of each value, which is what a producer would send.
const definitions: readonly Definition[] = createRequire(import.meta.url)('@octokit/webhooks-examples');

/** How many payloads `octokitPayloads` yields: 329 in 58 event names for version 7.6.1, the largest 27 kB. */
export const OCTOKIT_PAYLOAD_COUNT = definitions.reduce((sum, { examples }) => sum + examples.length, 0);

/** Yields every example payload of api.github.com that the package holds. */
export function* octokitPayloads(): Generator<OctokitPayload> {
  for (const { name, examples } of definitions) {
    for (const [index, example] of examples.entries()) {
      yield { name, number: index + 1, bytes: Buffer.from(JSON.stringify(example)) };
    }
  }
}
