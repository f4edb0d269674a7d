import { Allow, IsString, ValidateIf } from 'class-validator';

/** The body of POST /v1/consumers. */
export class CreateConsumerDto {
  /** readConsumerUid checks it. */
  @Allow()
  uid?: unknown;

  @ValidateIf((body: CreateConsumerDto) => body.name !== undefined)
  @IsString({ message: 'must be a string' })
  name?: string;

  /** checkMetadata checks it. */
  @Allow()
  metadata?: unknown;
}
