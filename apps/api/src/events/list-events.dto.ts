import { Allow, IsOptional, IsString, Matches, MaxLength } from 'class-validator';

/** The query of GET /v1/events. */
export class ListEventsDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;

  @Allow()
  consumer?: unknown;

  @IsOptional()
  @IsString()
  @MaxLength(256)
  @Matches(/^[A-Za-z0-9._-]+$/)
  event_type?: string;

  @IsOptional()
  @IsString()
  created_after?: string;

  @IsOptional()
  @IsString()
  created_before?: string;
}
