import { Controller, Get, HttpException, Res } from '@nestjs/common';
import { HealthCheckService, HealthIndicatorService, type HealthCheckResult } from '@nestjs/terminus';
import type { Response } from 'express';
import { ApiContext } from '../api-context.js';
import { Public } from '../auth/require-scope.js';
import { remember } from '../http/remember.js';
import { checkReadiness, PARTITION_DAYS_WARN, type Readiness } from './readiness.js';

const DATABASE_TIMEOUT_MS = 1_000;
const READINESS_AGE_MS = 500;

/** /healthz says that the process lives, /readyz that it can do its work. */
@Public()
@Controller()
export class HealthController {
  private readonly readiness: () => Promise<Readiness>;

  constructor(
    private readonly context: ApiContext,
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
  ) {
    this.readiness = remember(READINESS_AGE_MS, () =>
      checkReadiness(context.platformPool, DATABASE_TIMEOUT_MS),
    );
  }

  /** Depends on nothing: a database that is down is no reason to restart this process. */
  @Get('healthz')
  live() {
    return { status: 'ok' };
  }

  @Get('readyz')
  async ready(@Res({ passthrough: true }) response: Response): Promise<HealthCheckResult> {
    // Red at once when stopping, whatever the database says or takes to say.
    const known: Readiness = this.context.lifecycle.stopping
      ? { database: true, schema: true, partitionDays: PARTITION_DAYS_WARN }
      : await this.readiness();
    try {
      return await this.health.check([
        () => this.process(),
        () => this.database(known),
        () => this.schema(known),
        () => this.partitions(known),
      ]);
    } catch (error) {
      if (!(error instanceof HttpException)) throw error;
      response.status(503);
      return error.getResponse() as HealthCheckResult;
    }
  }

  private process() {
    const indicator = this.indicators.check('process');
    return this.context.lifecycle.stopping ? indicator.down({ message: 'stopping' }) : indicator.up();
  }

  private database({ database }: Readiness) {
    const indicator = this.indicators.check('database');
    return database
      ? indicator.up()
      : indicator.down({ message: `no answer within ${DATABASE_TIMEOUT_MS} ms` });
  }

  private schema({ schema }: Readiness) {
    const indicator = this.indicators.check('schema');
    return schema ? indicator.up() : indicator.down({ message: 'not at a revision this code runs on' });
  }

  private partitions({ partitionDays: days }: Readiness) {
    const indicator = this.indicators.check('partitions');
    if (days === null || days < 1) return indicator.down({ days_ahead: days });
    return days < PARTITION_DAYS_WARN
      ? indicator.up({ days_ahead: days, warning: 'few days ahead' })
      : indicator.up({ days_ahead: days });
  }
}
