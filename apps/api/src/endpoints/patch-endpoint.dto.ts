import { ArrayMaxSize, IsArray, IsIn, IsString, ValidateIf } from 'class-validator';
import { ENDPOINT_STATUSES, SUBSCRIPTION_ENTRIES_MAX, type EndpointStatus } from '#endpoints';

const given = (field: 'url' | 'description' | 'status') =>
  ValidateIf((body: PatchEndpointDto) => body[field] !== undefined);

/** The body of PATCH /v1/endpoints/:id: what it leaves out stays as it is. */
export class PatchEndpointDto {
  @given('url')
  @IsString()
  url?: string;

  @given('description')
  @IsString()
  description?: string;

  /** Null and an empty list mean all event types. */
  @ValidateIf((body: PatchEndpointDto) => body.event_types !== undefined && body.event_types !== null)
  @IsString({ each: true })
  @ArrayMaxSize(SUBSCRIPTION_ENTRIES_MAX)
  // The lowest is checked first, and only the first failure is told.
  @IsArray()
  event_types?: string[] | null;

  @given('status')
  @IsIn(ENDPOINT_STATUSES)
  status?: EndpointStatus;
}
