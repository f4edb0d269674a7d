import { Allow } from 'class-validator';

/** The query of GET /v1/endpoints. */
export class ListEndpointsDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;

  @Allow()
  consumer?: unknown;
}
