import { ArrayMaxSize, IsArray, IsIn, IsString, ValidateIf } from 'class-validator';
import { ENDPOINT_STATUSES, SUBSCRIPTION_ENTRIES_MAX, type EndpointStatus } from '#endpoints';

const given = (field: 'description' | 'status' | 'secret') =>
  ValidateIf((body: CreateEndpointDto) => body[field] !== undefined);

/** The body of POST /v1/endpoints. */
export class CreateEndpointDto {
  @IsString()
  url!: string;

  @given('description')
  @IsString()
  description?: string;

  /** Null and an empty list mean all event types. */
  @ValidateIf((body: CreateEndpointDto) => body.event_types !== undefined && body.event_types !== null)
  @IsString({ each: true })
  @ArrayMaxSize(SUBSCRIPTION_ENTRIES_MAX)
  // The lowest is checked first, and only the first failure is told.
  @IsArray()
  event_types?: string[] | null;

  @given('status')
  @IsIn(ENDPOINT_STATUSES)
  status?: EndpointStatus;

  @given('secret')
  @IsString()
  secret?: string;
}
