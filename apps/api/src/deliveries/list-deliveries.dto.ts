import { Allow, IsIn, IsOptional, IsString } from 'class-validator';
import type { DeliveryState } from '#outbox';

const STATES: readonly DeliveryState[] = [
  'pending',
  'in_progress',
  'succeeded',
  'failed',
  'dead',
  'cancelled',
  'held',
];

/** The query of GET /v1/deliveries. */
export class ListDeliveriesDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;

  @Allow()
  consumer?: unknown;

  @IsOptional()
  @IsString()
  endpoint_id?: string;

  @IsOptional()
  @IsString()
  event_id?: string;

  @IsOptional()
  @IsIn(STATES)
  state?: DeliveryState;

  @IsOptional()
  @IsString()
  created_after?: string;

  @IsOptional()
  @IsString()
  created_before?: string;
}
