import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { classifyAddress } from './classify-address.js';
import { parseEgressPolicy } from './parse-egress-policy.js';

const policyOf = (allow: string[], deny: string[] = []) =>
  parseEgressPolicy({ allow, deny, allowHttp: true });
const passes = (address: string, port: number, allow: string[], deny: string[] = []) =>
  classifyAddress(address, port, policyOf(allow, deny)).ok;

describe('classifyAddress', () => {
  it.each(['11.0.0.1', '1.1.1.1', '100.128.0.1', '172.32.0.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    'lets the public address %s pass',
    (address) => {
      expect(classifyAddress(address, 443, policyOf([]))).toEqual({ ok: true, by: 'public' });
    },
  );

  it.each([
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
  ])('[row 65] refuses the metadata address %s', (address) => {
    expect(classifyAddress(address, 80, policyOf([])).ok).toBe(false);
  });

  it.each([
    '',
    'localhost',
    '127.1',
    '0x7f.1',
    '0177.0.0.1',
    '1.1.1.1 ',
    'fe80::1%eth0',
    '2606:4700::1%1',
    '1.1.1.1/32',
  ])('refuses %j, which is no address', (address) => {
    expect(classifyAddress(address, 80, policyOf(['0.0.0.0/0', '::/0'])).ok).toBe(false);
  });

  it.each([
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '2002:808:808::1',
    '2001::1',
  ])('never lets %s pass, which embeds an IPv4 address, whatever the policy says', (address) => {
    const entry = { allow: true, range: ipaddr.parseCIDR(`${address}/128`), port: 80 };
    expect(classifyAddress(address, 80, { ...policyOf([]), addresses: [entry] }).ok).toBe(false);
    expect(classifyAddress(address, 80, policyOf(['::/0', '0.0.0.0/0', '127.0.0.0/8'])).ok).toBe(false);
  });

  it('lets an entry open what it names, at its port only', () => {
    expect(classifyAddress('127.0.0.1', 80, policyOf(['127.0.0.0/8']))).toEqual({ ok: true, by: 'listed' });
    expect(passes('127.0.0.1', 8080, ['127.0.0.1:8080'])).toBe(true);
    expect(passes('127.0.0.1', 8081, ['127.0.0.1:8080'])).toBe(false);
    expect(passes('::1', 443, ['[::1]/128:443'])).toBe(true);
    expect(passes('::1', 80, ['::1'])).toBe(true);
    expect(passes('::1', 80, ['127.0.0.0/8'])).toBe(false);
  });

  it('lets the most specific entry win, and allow at a tie', () => {
    expect(passes('10.1.1.1', 80, ['10.1.0.0/16'], ['10.1.1.0/24'])).toBe(false);
    expect(passes('10.1.1.1', 80, ['10.1.1.0/24'], ['10.1.0.0/16'])).toBe(true);
    expect(passes('10.1.1.1', 80, ['10.1.0.0/16'], ['10.1.0.0/16'])).toBe(true);
    expect(passes('10.1.1.1', 25, ['10.1.0.0/16'], ['10.1.0.0/16:25'])).toBe(false);
    expect(passes('8.8.8.8', 80, [], ['8.0.0.0/8'])).toBe(false);
    expect(passes('8.8.8.8', 80, ['8.8.8.8'], ['8.0.0.0/8'])).toBe(true);
  });

  it('does not open what is reserved by a range that is wider than the reserve', () => {
    expect(passes('127.0.0.1', 80, ['0.0.0.0/0'])).toBe(false);
    expect(passes('169.254.169.254', 80, ['128.0.0.0/1'])).toBe(false);
    expect(passes('fd00:ec2::254', 80, ['::/0'])).toBe(false);
    expect(passes('168.63.129.16', 80, ['168.63.0.0/16'])).toBe(false);
  });
});

describe('parseEgressPolicy', () => {
  it('names every bad entry in one error', () => {
    const bad = [
      '10.0.0.0/33',
      '10.0.0.1:0',
      '127.1',
      '[::1]/129',
      '::ffff:127.0.0.1',
      'a b',
      '*.',
      '*',
      '[fe80::1%lo]',
      '',
    ];
    const attempt = () =>
      parseEgressPolicy({ allow: [...bad, '10.0.0.0/8'], deny: ['1.2.3.4:99999'], allowHttp: false });
    expect(attempt).toThrow(/deny entry "1\.2\.3\.4:99999"/);
    for (const entry of bad) expect(attempt).toThrow(`allow entry ${JSON.stringify(entry)}`);
    expect(attempt).not.toThrow('"10.0.0.0/8"');
  });
});
