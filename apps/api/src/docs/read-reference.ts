import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A generated file of the reference, ready to be sent. */
export interface ReferenceFile {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** Reads a file that `npm run openapi` wrote into docs/reference; it lies at the same place in an image. */
export function readReference(name: 'openapi.json' | 'openapi.html'): ReferenceFile {
  const bytes = readFileSync(join(findRoot(), 'docs', 'reference', name));
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` };
}

/**
 * What the page may load: nothing at all, but the one style sheet that stands in it, by its digest. Neither script nor
 * form nor frame.
 */
export function pagePolicy(page: Buffer): string {
  const style = /<style>([^]*?)<\/style>/.exec(page.toString('utf8'))?.[1] ?? '';
  const digest = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}
