import { describe, expect, it } from 'vitest';
import { EgressError, printable, toEgressError } from './egress-error.js';

const withCode = (code: string, message = 'text'): Error => Object.assign(new Error(message), { code });

describe('toEgressError', () => {
  it.each([
    ['ECONNREFUSED', 'connection_refused'],
    ['ECONNRESET', 'connection_reset'],
    ['EPIPE', 'connection_reset'],
    ['ECONNABORTED', 'connection_reset'],
    ['ETIMEDOUT', 'timeout'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_error'],
    ['EHOSTUNREACH', 'network_error'],
    ['EMFILE', 'out_of_resources'],
  ])('sorts %s under %s', (code, kind) => {
    expect(toEgressError(withCode(code))).toMatchObject({ kind, message: `text (${code})` });
  });

  it('takes the first reason when several addresses failed', () => {
    const all = Object.assign(new AggregateError([new Error('connect ECONNREFUSED'), new Error('other')]), {
      code: 'ECONNREFUSED',
    });
    expect(toEgressError(all)).toMatchObject({
      kind: 'connection_refused',
      message: 'connect ECONNREFUSED (ECONNREFUSED)',
    });
  });

  it('keeps what is sorted already, and survives what is no error', () => {
    const known = new EgressError('egress_blocked', 'no');
    expect(toEgressError(known)).toBe(known);
    expect(toEgressError('odd')).toMatchObject({ kind: 'network_error', message: 'unknown error' });
  });
});

describe('printable', () => {
  it('replaces control and invisible characters and bounds the length', () => {
    expect(printable('a\u0000b\r\nc\u202ed\ud800e\u2028f é日')).toBe('a?b??c?d?e?f é日');
    expect(printable('x'.repeat(600))).toHaveLength(500);
    expect(printable(`${'x'.repeat(499)}😀`)).toBe(`${'x'.repeat(499)}?`);
  });
});
