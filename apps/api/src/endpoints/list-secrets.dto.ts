import { Allow } from 'class-validator';

/** The query of GET /v1/endpoints/:id/secrets. */
export class ListSecretsDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;
}
