import { IsString } from 'class-validator';

/** The body of PATCH /v1/tenants/:id. */
export class PatchTenantDto {
  @IsString({ message: 'must be a string' })
  name!: string;
}
