import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { createLogger } from './logger.js';

function logged(fields: object): { text: string; line: Record<string, Record<string, unknown>> } {
  let text = '';
  const destination = new Writable({
    write(chunk: Buffer, _, done) {
      text += chunk.toString();
      done();
    },
  });
  createLogger('test', 'info', destination).info(fields);
  return { text, line: JSON.parse(text) };
}

it('writes of an error its name, message, code and stack, and nothing that a driver hung on it', () => {
  const error = Object.assign(new Error('new row violates check constraint'), {
    code: '23514',
    detail: 'Failing row contains (whsec_leaked, "payload")',
    parameters: ['whsec_leaked'],
    input: 'postgresql://user:leaked@host/db',
    cause: new Error('whsec_leaked'),
  });
  const { text, line } = logged({ event: 'record.failed', err: error });
  expect(text).not.toContain('leaked');
  expect(line['err']).toMatchObject({
    type: 'Error',
    message: 'new row violates check constraint',
    code: '23514',
  });
  expect(line['err']!['stack']).toContain('logger.test');
});

it('names an error that has no message by its code', () => {
  const { line } = logged({ err: Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' }) });
  expect(line['err']).toMatchObject({ type: 'AggregateError', message: 'ECONNREFUSED' });
});

it('takes whatever was thrown', () => {
  expect(logged({ err: 'a text' }).line['err']).toEqual({ type: 'string', message: 'a text' });
});

it('cuts credentials out by name', () => {
  const { text } = logged({ authorization: 'leaked', endpoint: { secret: 'leaked' }, databaseUrl: 'leaked' });
  expect(text).not.toContain('leaked');
});

it('can speak under an unknown level, so that the refusal of that setting is heard', () => {
  expect(createLogger('test', 'loud').level).toBe('info');
  expect(createLogger('test', 'silent').level).toBe('silent');
});
