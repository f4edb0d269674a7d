import { Controller, Get, Headers, Res } from '@nestjs/common';
import type { Response } from 'express';
import { countPartitionDays, measureQueue } from '#outbox';
import { AppError, isMetricsAllowed, type Queryable } from '#runtime';
import { ApiContext } from '../api-context.js';
import { Public } from '../auth/require-scope.js';
import { remember } from '../http/remember.js';
import type { DatabaseMeasure } from './create-metrics.js';

/** The queue is counted at most this often, however often somebody scrapes. */
const MEASURE_AGE_MS = 5_000;

/** /metrics */
@Public()
@Controller('metrics')
export class MetricsController {
  private readonly measure: () => Promise<void>;

  constructor(private readonly context: ApiContext) {
    this.measure = remember(MEASURE_AGE_MS, async () => {
      context.metrics.showDatabase(await measureDatabase(context.platformPool).catch(() => null));
    });
  }

  @Get()
  async read(
    @Headers('authorization') authorization: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    if (!isMetricsAllowed(this.context.config.metricsToken, authorization)) {
      throw new AppError('invalid_metrics_token');
    }
    await this.measure();
    const { contentType, text } = await this.context.metrics.render();
    response.setHeader('content-type', contentType);
    response.end(text);
  }
}

async function measureDatabase(db: Queryable): Promise<DatabaseMeasure> {
  return { queue: await measureQueue(db), partitionDays: await countPartitionDays(db) };
}
