import { Allow } from 'class-validator';

/** The query of GET /v1/keys. */
export class ListKeysDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;
}
