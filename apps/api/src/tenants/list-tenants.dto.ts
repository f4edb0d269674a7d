import { Allow, IsIn, IsOptional } from 'class-validator';

/** The query of GET /v1/tenants. */
export class ListTenantsDto {
  @Allow()
  limit?: unknown;

  @Allow()
  cursor?: unknown;

  @IsOptional()
  @IsIn(['true', 'false'], { message: 'must be true or false' })
  deleting?: 'true' | 'false';
}
