import { randomUUID } from 'node:crypto';

const GIVEN = /^[A-Za-z0-9._-]{1,128}$/;

/** The id by which a request is found again: the client's own where it is plain enough, else a new one. */
export function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && GIVEN.test(given) ? given : `req_${randomUUID().replaceAll('-', '')}`;
}
