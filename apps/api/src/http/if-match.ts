import type { VersionExpectation } from '#runtime';

/** The ETag of a version. */
export function etagOf(version: number): string {
  return `"${version}"`;
}

/**
 * What an If-Match header expects: nothing when it is absent, any version for `*`, else one of those it lists. Weak
 * tags never match, as RFC 9110 has it.
 */
export function expectationOf(header: string | undefined): VersionExpectation {
  if (header === undefined || header.trim() === '*') return () => true;
  const tags = header.split(',').map((tag) => tag.trim());
  return (version) => tags.includes(etagOf(version));
}
