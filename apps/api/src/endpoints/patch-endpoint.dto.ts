import { Allow, ArrayMaxSize, IsArray, IsIn, IsString, ValidateIf } from 'class-validator';
import { ENDPOINT_STATUSES, SUBSCRIPTION_ENTRIES_MAX, type EndpointStatus } from '#endpoints';

const given = (field: 'url' | 'description' | 'status') =>
  ValidateIf((body: PatchEndpointDto) => body[field] !== undefined);

/** The body of PATCH /v1/endpoints/:id: what it leaves out stays as it is. */
export class PatchEndpointDto {
  @given('url')
  @IsString({ message: 'must be a string' })
  url?: string;

  @given('description')
  @IsString({ message: 'must be a string' })
  description?: string;

  /** Null and an empty list mean all event types. */
  @ValidateIf((body: PatchEndpointDto) => body.event_types !== undefined && body.event_types !== null)
  @IsString({ each: true, message: 'must be a list of strings' })
  @ArrayMaxSize(SUBSCRIPTION_ENTRIES_MAX, { message: `must be at most ${SUBSCRIPTION_ENTRIES_MAX} entries` })
  // The lowest is checked first, and only the first failure is told.
  @IsArray({ message: 'must be a list of strings' })
  event_types?: string[] | null;

  @given('status')
  @IsIn(ENDPOINT_STATUSES, { message: `must be one of ${ENDPOINT_STATUSES.join(', ')}` })
  status?: EndpointStatus;

  // readFilter checks it, to the last value in it.
  @Allow()
  filter?: unknown;

  // readDeliveryPolicy checks these, to the last field in them.
  @Allow()
  retry?: unknown;

  @Allow()
  max_age_seconds?: unknown;

  @Allow()
  timeout?: unknown;

  @Allow()
  rate_per_second?: unknown;

  @Allow()
  concurrency?: unknown;

  @Allow()
  circuit?: unknown;
}
