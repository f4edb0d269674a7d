import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, it } from 'vitest';
import { secretKey, signingKey } from './secret.js';
import { sign } from './sign.js';
import { verify, type HeaderFields } from './verify.js';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const TIME = 1614265330;
const BODY = '{"test": 2432232314}';
const GOOD = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
const WRONG = 'v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=';

const keyOf = (secret: string) => {
  const result = secretKey(secret);
  if (!result.ok) throw new Error(result.reason);
  return signingKey(result.key);
};
const signText = (secret: string, id: string, timestampSeconds: number, body: string) =>
  sign({ id, timestampSeconds, body: Buffer.from(body), keys: [keyOf(secret)] });
const headersOf = (signature: string, timestamp: number | string = TIME) => ({
  'webhook-id': ID,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': signature,
});
const judge = (headers: HeaderFields, nowSeconds = TIME, body = BODY, secrets: string | string[] = SECRET) =>
  verify({ headers, body: Buffer.from(body), secrets, nowSeconds });

describe('sign', () => {
  it('[row 58] gives the known signature', () => {
    expect(signText('whsec_dGVzdHNlY3JldA==', 'msg_123', 1700000000, '{}')).toBe(
      'v1,rzWSNvryAlNWGy2Hk3pzTIxDc3okDWfaqB4dQ9FWTqE=',
    );
  });

  it.each([
    ['common', SECRET, ID, TIME, BODY, GOOD],
    [
      'Rust',
      'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
      'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk',
      1649367553,
      '{"email":"test@example.com","username":"test_user"}',
      'v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=',
    ],
    [
      'Svix docs',
      'whsec_plJ3nmyCDGBKInavdOK15jsl',
      'msg_loFOjxBNrRLzqYUf',
      1731705121,
      '{"event_type":"ping","data":{"success":true}}',
      'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
    ],
    ['empty body', SECRET, ID, TIME, '', 'v1,v48jdbgvh29KJz2Qc+ghw8G6vG3nAKnujWBg8oM/62A='],
  ])('[H25] agrees with the %s vector in both directions', (_name, secret, id, time, body, signature) => {
    expect(signText(secret, id, time, body)).toBe(signature);
    const headers = { 'webhook-id': id, 'webhook-timestamp': String(time), 'webhook-signature': signature };
    expect(judge(headers, time, body, secret)).toEqual({ ok: true, timestampSeconds: time });
  });

  it('signs with each live key, in order, separated by one space', () => {
    const other = keyOf('whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD');
    const value = sign({
      id: ID,
      timestampSeconds: TIME,
      body: Buffer.from(BODY),
      keys: [other, keyOf(SECRET)],
    });
    expect(value.split(' ')).toEqual([expect.stringMatching(/^v1,.{44}$/), GOOD]);
  });

  it('signs bytes that are no text', () => {
    const body = Buffer.from([0xff, 0x00, 0xc3, 0x28]);
    const signature = sign({ id: ID, timestampSeconds: TIME, body, keys: [keyOf(SECRET)] });
    expect(verify({ headers: headersOf(signature), body, secrets: SECRET, nowSeconds: TIME }).ok).toBe(true);
    const asText = Buffer.from(body.toString('utf8'));
    expect(
      verify({ headers: headersOf(signature), body: asText, secrets: SECRET, nowSeconds: TIME }).ok,
    ).toBe(false);
  });

  it('refuses a timestamp that is no integer', () => {
    expect(() => signText(SECRET, ID, 1.5, BODY)).toThrow(RangeError);
  });
});

describe('the reference libraries', () => {
  const now = Math.floor(Date.now() / 1000);
  const secrets = [
    SECRET,
    `whsec_${Buffer.alloc(64, 9).toString('base64')}`,
    'whsec_plJ3nmyCDGBKInavdOK15jsl',
  ];
  const libraries = [
    ['standardwebhooks', (secret: string) => new StandardWebhook(secret)],
    ['svix', (secret: string) => new SvixWebhook(secret)],
  ] as const;
  const pairs = libraries.flatMap(([name, open]) => secrets.map((secret) => [name, secret, open] as const));

  it.each(pairs)('[H25] %s accepts what we sign with %s, and we what it signs', (_name, secret, open) => {
    const library = open(secret);
    const headers = headersOf(signText(secret, ID, now, BODY), now);
    expect(library.verify(BODY, headers)).toEqual({ test: 2432232314 });
    const theirs = library.sign(ID, new Date(now * 1000), BODY);
    expect(judge(headersOf(theirs, now), now, BODY, secret)).toEqual({ ok: true, timestampSeconds: now });
    expect(() => library.verify(`${BODY} `, headers)).toThrow('No matching signature found');
  });

  it('[row 61] standardwebhooks accepts what we sign with a raw secret', () => {
    const library = new StandardWebhook('a raw secret', { format: 'raw' });
    const headers = headersOf(signText('a raw secret', ID, now, BODY), now);
    expect(library.verify(BODY, headers)).toEqual({ test: 2432232314 });
  });
});

describe('verify', () => {
  it.each([0, 300, -300])('[row 60] accepts a timestamp %i s away', (seconds) => {
    expect(judge(headersOf(GOOD), TIME + seconds)).toEqual({ ok: true, timestampSeconds: TIME });
  });

  it.each([301, -301, 1e9, Number.NaN])('[row 60] refuses a timestamp %d s away', (seconds) => {
    expect(judge(headersOf(GOOD), TIME + seconds)).toEqual({
      ok: false,
      reason: 'timestamp_out_of_tolerance',
    });
  });

  it.each(['1614265330.0', '-1614265330', '1.6e9', ' 1614265330', '0x6037bb72', 'now', '9'.repeat(400)])(
    '[row 60] refuses the timestamp %j',
    (timestamp) => {
      expect(judge(headersOf(GOOD, timestamp))).toEqual({ ok: false, reason: 'bad_timestamp' });
    },
  );

  it.each(['Webhook-Id', 'WEBHOOK-ID', 'webhook-id'])(
    '[row 60] reads header names in any case, as %s',
    (name) => {
      const headers = { [name]: ID, 'WEBHOOK-timestamp': String(TIME), 'Webhook-Signature': [GOOD] };
      expect(judge(headers).ok).toBe(true);
    },
  );

  it('[row 60] refuses a changed body, id, timestamp or secret', () => {
    expect(judge(headersOf(GOOD), TIME, '{"test":2432232314}').ok).toBe(false);
    expect(judge({ ...headersOf(GOOD), 'webhook-id': 'msg_other' }).ok).toBe(false);
    expect(judge(headersOf(GOOD, TIME + 1)).ok).toBe(false);
    expect(judge(headersOf(GOOD), TIME, BODY, 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD').ok).toBe(false);
  });

  it.each([
    ['the right one in the middle', `${WRONG} v1,x ${GOOD} ${WRONG}`],
    ['the right one second', `${WRONG} ${GOOD}`],
    ['unknown versions before it', `v2,${GOOD.slice(3)} v1a,${GOOD.slice(3)} ${GOOD}`],
  ])('[row 60] [H10] accepts several tokens with %s', (_what, signature) => {
    expect(judge(headersOf(signature)).ok).toBe(true);
  });

  it.each([
    ['nothing', ''],
    ['the version alone', 'v1,'],
    ['a short one', 'v1,AAAA'],
    ['a wrong one', WRONG],
    ['a truncated one', GOOD.slice(0, -1)],
    ['one megabyte', `v1,${'A'.repeat(1_048_576)}`],
    ['a megabyte of tokens', 'v1,A '.repeat(200_000)],
    ['no base64', `v1,${'!'.repeat(44)}`],
    ['as many characters but more bytes', `v1,${'é'.repeat(44)}`],
    ['an unknown version', `v2,${GOOD.slice(3)}`],
    ['no version', GOOD.slice(3)],
    [
      'an ed25519 signature',
      'v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==',
    ],
    ['url-safe base64', GOOD.replaceAll('+', '-').replaceAll('/', '_')],
    ['no padding', GOOD.replaceAll('=', '')],
    ['a comma list', `${WRONG},${GOOD}`],
    ['a NUL', `${GOOD}\u0000`],
  ])('[H10] says invalid, never throws, for a signature with %s', (_what, signature) => {
    expect(judge(headersOf(signature))).toEqual({ ok: false, reason: 'no_matching_signature' });
  });

  it('refuses missing and repeated headers', () => {
    expect(judge({})).toEqual({ ok: false, reason: 'missing_header' });
    expect(judge({ ...headersOf(GOOD), 'webhook-id': '' })).toEqual({ ok: false, reason: 'missing_header' });
    expect(judge({ ...headersOf(GOOD), 'Webhook-Id': ID })).toEqual({ ok: false, reason: 'repeated_header' });
  });

  it.each(['', 'whsec_', 'whsec_*'])(
    '[H10] refuses with the unusable secret %j instead of signing with nothing',
    (secret) => {
      expect(judge(headersOf(GOOD), TIME, BODY, secret)).toEqual({ ok: false, reason: 'bad_secret' });
    },
  );

  it('accepts the old or the new secret while both are given', () => {
    const both = ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD', SECRET];
    expect(judge(headersOf(GOOD), TIME, BODY, both).ok).toBe(true);
    expect(judge(headersOf(GOOD), TIME, BODY, []).ok).toBe(false);
  });
});
