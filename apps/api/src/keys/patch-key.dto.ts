import { IsString } from 'class-validator';

/** The body of PATCH /v1/keys/:id. */
export class PatchKeyDto {
  @IsString({ message: 'must be a string' })
  name!: string;
}
