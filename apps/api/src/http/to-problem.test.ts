import { NotFoundException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { toProblem } from './to-problem.js';

function errorWith(message: string, fields: object): Error {
  return Object.assign(new Error(message), fields);
}

describe('toProblem', () => {
  it('says what an AppError says', () => {
    const error = new AppError('database_unavailable', 'Come again.', { retryAfterSeconds: 3 });
    const problem = toProblem(error, 'req_1');
    expect(problem).toMatchObject({ status: 503, headers: { 'retry-after': '3' }, ours: false });
    expect(problem.body).toEqual({
      type: '/errors/database_unavailable',
      title: 'The database cannot be reached.',
      status: 503,
      detail: 'Come again.',
      code: 'database_unavailable',
      request_id: 'req_1',
    });
  });

  it('[row 88] asks for a bearer key on every 401', () => {
    for (const code of ['authentication_required', 'invalid_api_key', 'invalid_metrics_token'] as const) {
      expect(toProblem(new AppError(code), 'r').headers['www-authenticate']).toBe('Bearer');
    }
  });

  it('[row 89] says nothing of an unknown error but that it happened', () => {
    const error = errorWith('select secret from /etc/passwd', { code: '42601', query: 'select 1' });
    const problem = toProblem(error, 'r');
    expect(problem).toMatchObject({ status: 500, ours: true });
    expect(JSON.stringify(problem.body)).not.toMatch(/select|passwd|stack|42601/);
    expect(toProblem('a string was thrown', 'r').body.code).toBe('internal_error');
  });

  it.each([
    [errorWith('connect', { code: 'ECONNREFUSED' }), 503, 'database_unavailable'],
    [errorWith('terminated', { code: '57P01' }), 503, 'database_unavailable'],
    [errorWith('wrapped', { driverError: { code: '57014' } }), 503, 'database_unavailable'],
    [errorWith('lock', { code: '55P03' }), 503, 'database_unavailable'],
    [new NotFoundException(), 404, 'route_not_found'],
    [errorWith('Failed to decode param', { status: 400 }), 400, 'invalid_request'],
    [errorWith('odd', { status: 418 }), 500, 'internal_error'],
  ])('answers %s with %i %s', (error, status, code) => {
    expect(toProblem(error, 'r').body).toMatchObject({ status, code });
  });
});
