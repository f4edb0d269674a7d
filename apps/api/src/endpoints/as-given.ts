import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { Allow } from 'class-validator';

/**
 * Hands a field on exactly as the body has it, for a reader that checks all of it. By itself class-transformer copies
 * what is nested, and leaves out `__proto__` and `constructor` without a word.
 */
export const AsGiven = () =>
  applyDecorators(
    Allow(),
    Transform(({ obj, key }) => (obj as Record<string, unknown>)[key]),
  );
