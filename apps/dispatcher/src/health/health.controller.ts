import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Headers, HttpCode, Inject, Res, UnauthorizedException } from '@nestjs/common';
import {
  HealthCheck,
  HealthCheckService,
  HealthIndicatorService,
  type HealthCheckResult,
} from '@nestjs/terminus';
import type { Response } from 'express';
import { AppError, assertSchemaRevision, isMetricsAllowed, type Config } from '#runtime';
import { CONFIG } from '../tokens.js';
import { Engine } from '../engine.js';
import { register } from './metrics.js';

const DATABASE_TIMEOUT_MS = 1_000;

/** Liveness, readiness and metrics of the dispatcher; its only routes. */
@Controller()
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly engine: Engine,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** 200 as long as the process turns: it depends on nothing. */
  @Get('healthz')
  @HttpCode(200)
  healthz(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** 200 when claims can be made: database there, schema at a known revision, not stopping. */
  @Get('readyz')
  @HealthCheck()
  readyz(): Promise<HealthCheckResult> {
    return this.health.check([() => this.database(), () => this.scheduler()]);
  }

  /** Silence counts as no, and so does any error: a thrown one would be answered 500. */
  private async database() {
    const indicator = this.indicators.check('database');
    try {
      const asked = assertSchemaRevision(this.engine.db).then(() => 'ready');
      const answer = await Promise.race([asked, delay(DATABASE_TIMEOUT_MS, 'silent', { ref: false })]);
      if (answer === 'ready') return indicator.up();
      return indicator.down({ message: `no answer within ${DATABASE_TIMEOUT_MS} ms` });
    } catch (error) {
      return indicator.down({ message: error instanceof AppError ? error.message : 'it cannot be reached' });
    }
  }

  private scheduler() {
    const indicator = this.indicators.check('scheduler');
    return this.engine.healthy
      ? indicator.up()
      : indicator.down({ message: 'the dispatcher does not claim' });
  }

  @Get('metrics')
  async metrics(
    @Headers('authorization') authorization: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    if (!isMetricsAllowed(this.config.metricsToken, authorization)) throw new UnauthorizedException();
    response.type(register.contentType).send(await register.metrics());
  }
}
