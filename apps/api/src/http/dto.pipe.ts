import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import { validate, type ValidationError } from 'class-validator';
import { AppError } from '#runtime';

/** As many places as a problem names at most. */
const DETAILS_MAX = 20;

/**
 * Checks bodies and queries against their DTO: `unknown_field` for what it does not know, else `validation_failed`. A
 * DTO is flat and its fields hold just what the client sent. Nest's ValidationPipe would copy what is nested first: it
 * drops `__proto__` there without a word, and breaks at `{"constructor": 1}`, which was a 500.
 */
@Injectable()
export class DtoPipe implements PipeTransform<unknown> {
  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
    if ((type !== 'body' && type !== 'query') || metatype === undefined) return value;
    const inherited = Object.keys(value ?? {}).filter((name) => name in Object.prototype);
    if (inherited.length > 0) throw unknownField(inherited);
    const dto = Object.assign(new metatype() as object, value);
    const errors = await validate(dto, {
      whitelist: true,
      forbidNonWhitelisted: true,
      forbidUnknownValues: false,
      stopAtFirstError: true,
      validationError: { target: false, value: false },
    });
    if (errors.length > 0) throw toAppError(errors, dto);
    return dto;
  }
}

/** Refuses fields that are not known here, naming them. */
export function unknownField(names: readonly string[]): AppError {
  const details = names
    .slice(0, DETAILS_MAX)
    .map((name) => ({ field: name.slice(0, 100), reason: 'unknown' as const }));
  const shown = details.map(({ field }) => field).join(', ');
  return new AppError('unknown_field', `Not known here: ${shown}.`, { details });
}

function toAppError(errors: ValidationError[], dto: object): AppError {
  const unknown = errors.filter((error) => error.constraints?.['whitelistValidation'] !== undefined);
  if (unknown.length > 0) return unknownField(unknown.map((error) => error.property));
  const named = errors.slice(0, DETAILS_MAX);
  const details = named.map(({ property }) => ({
    field: property,
    reason: property in dto ? ('invalid' as const) : ('missing' as const),
  }));
  return new AppError('validation_failed', `${named.map(ruleOf).join('; ')}.`, { details });
}

/** The rule that a field breaks, in words that begin with its name. */
function ruleOf({ property, constraints }: ValidationError): string {
  const [rule = 'is not acceptable'] = Object.values(constraints ?? {});
  return rule.startsWith(property) ? rule : `${property} ${rule}`;
}
