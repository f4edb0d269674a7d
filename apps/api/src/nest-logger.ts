import type { LoggerService } from '@nestjs/common';
import type { Logger } from '#runtime';

/** Sends what Nest itself has to say through our logger, one JSON line each. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(this.line(message, rest));
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.logger.error(this.line(message, rest));
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.logger.warn(this.line(message, rest));
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(this.line(message, rest));
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.logger.trace(this.line(message, rest));
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.logger.fatal(this.line(message, rest));
  }

  private line(message: unknown, rest: readonly unknown[]): object {
    const text = message instanceof Error ? message.message : String(message);
    return { event: 'nest', message: text, context: rest.findLast((entry) => typeof entry === 'string') };
  }
}
