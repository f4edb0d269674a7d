import { Allow, IsString, ValidateIf } from 'class-validator';

/** The body of PATCH /v1/consumers/:id: what it leaves out stays as it is. */
export class PatchConsumerDto {
  @ValidateIf((body: PatchConsumerDto) => body.name !== undefined)
  @IsString({ message: 'must be a string' })
  name?: string;

  /** checkMetadata checks it; null takes it away. */
  @Allow()
  metadata?: unknown;
}
