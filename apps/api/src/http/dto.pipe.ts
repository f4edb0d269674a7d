import { Injectable, ValidationPipe, type ArgumentMetadata, type ValidationError } from '@nestjs/common';
import { AppError, type ErrorDetail } from '#runtime';

/** Checks bodies and queries against their DTO: `unknown_field` for what it does not know, else `validation_failed`. */
@Injectable()
export class DtoPipe extends ValidationPipe {
  constructor() {
    super({
      transform: true,
      whitelist: true,
      forbidNonWhitelisted: true,
      stopAtFirstError: true,
      validationError: { target: false, value: false },
      exceptionFactory: toAppError,
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (
      (metadata.type === 'body' || metadata.type === 'query') &&
      typeof value === 'object' &&
      value !== null
    ) {
      // class-transformer drops these names without a word instead of reporting them.
      const inherited = Object.keys(value).filter((name) => name in Object.prototype);
      if (inherited.length > 0) throw unknownField(inherited);
    }
    return super.transform(value, metadata);
  }
}

/** Refuses fields that are not known here, naming them. */
export function unknownField(names: readonly string[]): AppError {
  const details = names.slice(0, 20).map((name) => ({ field: name.slice(0, 100), reason: 'unknown' }));
  return new AppError('unknown_field', undefined, { details });
}

function toAppError(errors: ValidationError[]): AppError {
  const unknown = errors.filter((error) => error.constraints?.['whitelistValidation'] !== undefined);
  if (unknown.length > 0) return unknownField(unknown.map((error) => error.property));
  return new AppError('validation_failed', undefined, { details: errors.slice(0, 20).map(toDetail) });
}

function toDetail(error: ValidationError): ErrorDetail {
  return { field: error.property, reason: Object.values(error.constraints ?? {}).join('; ') || 'invalid' };
}
