/** Returns the code that Node or PostgreSQL put on an error (`ENOENT`, `3D000`), if it carries one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
