import { ArrayMaxSize, IsArray, IsString, ValidateIf } from 'class-validator';

/** How many scopes a key is given at most: more than there are, and still no list to wade through. */
export const SCOPES_MAX = 32;

/** The body of POST /v1/keys. */
export class CreateKeyDto {
  @IsString({ message: 'must be a string' })
  name!: string;

  @IsString({ each: true, message: 'must be a list of strings' })
  @ArrayMaxSize(SCOPES_MAX, { message: `must be at most ${SCOPES_MAX} entries` })
  // The lowest is checked first, and only the first failure is told.
  @IsArray({ message: 'must be a list of strings' })
  scopes!: string[];

  /** Null is a key that ends only when it is revoked. */
  @ValidateIf((body: CreateKeyDto) => body.expires_at !== undefined && body.expires_at !== null)
  @IsString({ message: 'must be a time by RFC 3339' })
  expires_at?: string | null;
}
