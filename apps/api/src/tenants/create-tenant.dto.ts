import { Allow, IsString } from 'class-validator';

/** The body of POST /v1/tenants. */
export class CreateTenantDto {
  @IsString({ message: 'must be a string' })
  name!: string;

  // readFirstKey checks it, to the last field in it.
  @Allow()
  first_key?: unknown;
}
