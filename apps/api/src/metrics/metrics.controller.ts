import { createHash, timingSafeEqual } from 'node:crypto';
import { Controller, Get, Headers, Res } from '@nestjs/common';
import type { Response } from 'express';
import { measureQueue } from '#outbox';
import { AppError } from '#runtime';
import { ApiContext } from '../api-context.js';
import { Public } from '../auth/require-scope.js';
import { remember } from '../http/remember.js';

/** The queue is counted at most this often, however often somebody scrapes. */
const MEASURE_AGE_MS = 5_000;

/** /metrics */
@Public()
@Controller('metrics')
export class MetricsController {
  private readonly measure: () => Promise<void>;

  constructor(private readonly context: ApiContext) {
    this.measure = remember(MEASURE_AGE_MS, async () => {
      context.metrics.showQueue(await measureQueue(context.readPool).catch(() => null));
    });
  }

  @Get()
  async read(
    @Headers('authorization') authorization: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const token = this.context.config.metricsToken;
    if (token !== null && !same(authorization ?? '', `Bearer ${token}`))
      throw new AppError('invalid_metrics_token');
    await this.measure();
    const { contentType, text } = await this.context.metrics.render();
    response.setHeader('content-type', contentType);
    response.end(text);
  }
}

/** Compares digests: they have one length, so the time says nothing about the token. */
function same(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
