import { expect, it } from 'vitest';

import { OCTOKIT_PAYLOAD_COUNT, octokitPayloads } from './octokit-payloads.js';

it('yields every example payload once, each as JSON text', () => {
  const payloads = [...octokitPayloads()];
  expect(payloads).toHaveLength(OCTOKIT_PAYLOAD_COUNT);
  expect(OCTOKIT_PAYLOAD_COUNT).toBe(329);
  expect(new Set(payloads.map(({ name, number }) => `${name} ${number}`)).size).toBe(329);
  for (const { bytes } of payloads) expect(typeof JSON.parse(bytes.toString())).toBe('object');
});
