import { IsInt, Max, Min, ValidateIf } from 'class-validator';
import { OVERLAP_SECONDS_MAX } from '#tenants';

const MESSAGE = `must be a whole number from 0 to ${OVERLAP_SECONDS_MAX}`;

/** The body of POST /v1/keys/:id/rotate. */
export class RotateKeyDto {
  @ValidateIf((body: RotateKeyDto) => body.overlap_seconds !== undefined)
  @Max(OVERLAP_SECONDS_MAX, { message: MESSAGE })
  @Min(0, { message: MESSAGE })
  @IsInt({ message: MESSAGE })
  overlap_seconds?: number;
}
