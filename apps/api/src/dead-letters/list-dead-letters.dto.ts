import { Allow, IsIn, IsOptional, IsString } from 'class-validator';

/** The query of GET /v1/dead-letters. */
export class ListDeadLettersDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;

  @IsOptional()
  @IsString()
  endpoint_id?: string;

  @IsOptional()
  @IsIn(['true', 'false'])
  resolved?: 'true' | 'false';

  @IsOptional()
  @IsString()
  died_after?: string;

  @IsOptional()
  @IsString()
  died_before?: string;
}
