import { Allow } from 'class-validator';

/** The query of GET /v1/consumers. */
export class ListConsumersDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;

  /** readConsumerUid checks it. */
  @Allow()
  uid?: unknown;
}
