import { Allow, IsString, ValidateIf } from 'class-validator';

/** The body of POST /v1/endpoints/:id/secrets; it may be left out. */
export class CreateSecretDto {
  @ValidateIf((body: CreateSecretDto) => body.secret !== undefined)
  @IsString({ message: 'must be a string' })
  secret?: string;

  // rotateSecret checks it.
  @Allow()
  overlap_seconds?: unknown;
}
