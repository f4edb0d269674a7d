import type { LoggerService } from '@nestjs/common';
import type { Logger } from './logger.js';

/** Sends what Nest itself has to say through our log; its cheerful start-up lines only at debug level. */
export function nestLogger(logger: Logger): LoggerService {
  const at =
    (level: 'debug' | 'warn' | 'error') =>
    (message: unknown, ...context: unknown[]) =>
      logger[level](
        { event: 'nest', context: context.at(-1) },
        message instanceof Error ? message.message : String(message),
      );
  return {
    log: at('debug'),
    debug: at('debug'),
    verbose: at('debug'),
    warn: at('warn'),
    error: at('error'),
    fatal: at('error'),
  };
}
