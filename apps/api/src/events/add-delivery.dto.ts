import { IsString } from 'class-validator';

/** The body of POST /v1/events/:id/deliveries. */
export class AddDeliveryDto {
  @IsString()
  endpoint_id!: string;
}
