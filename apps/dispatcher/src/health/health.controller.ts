import {
  Controller,
  Get,
  Headers,
  HttpCode,
  Inject,
  Res,
  ServiceUnavailableException,
  UnauthorizedException,
} from '@nestjs/common';
import { HealthCheck, HealthCheckService, type HealthCheckResult } from '@nestjs/terminus';
import type { Response } from 'express';
import { assertSchemaRevision, isMetricsAllowed, type Config } from '#runtime';
import { CONFIG } from '../tokens.js';
import { Engine } from '../engine.js';
import { register } from './metrics.js';

/** Liveness, readiness and metrics of the dispatcher; its only routes. */
@Controller()
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
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
    return this.health.check([
      async () => {
        await assertSchemaRevision(this.engine.db);
        return { database: { status: 'up' } };
      },
      () => {
        if (!this.engine.healthy) throw new ServiceUnavailableException('the dispatcher does not claim');
        return { scheduler: { status: 'up' } };
      },
    ]);
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
