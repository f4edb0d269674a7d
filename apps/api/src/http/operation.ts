import { SetMetadata } from '@nestjs/common';
import type { ErrorCode } from '#runtime';

/** What the reference says of a route that its code cannot say by itself. */
export interface OperationText {
  /** Verb and noun; clients name their methods by it, so it never changes. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  /** Codes that the code could give as far as a reader of it can see, and never does. */
  readonly never?: readonly ErrorCode[];
}

export const OPERATION = 'waybill:operation';

/** Describes a route for docs/reference/openapi.json; `npm run check` asks for it where it is missing. */
export const Operation = (text: OperationText) => SetMetadata(OPERATION, text);
