import { expect, it } from 'vitest';

import { startReceiver } from '../support/receiver.js';
import { openStage, QUICK } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

interface AttemptRow {
  readonly path: string;
  readonly outcome: string;
  readonly status_code: number | null;
  readonly error_kind: string | null;
  readonly error: string | null;
}

const READ_ATTEMPTS = `
select regexp_replace(p.url, '.*/', '') as path, a.outcome, a.status_code, a.error_kind, a.error
from waybill.attempts a
join waybill.endpoints p on p.tenant_id = a.tenant_id and p.id = a.endpoint_id
`;

it('[row 35] [H06] a redirect is a failed attempt, wherever it leads to, and is kept as text only', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const login = await startReceiver();
  onTestFinished(() => login.close());
  const locations: Record<string, string | null> = {
    login: `${login.url}/login`,
    metadata: 'http://169.254.169.254/latest/meta-data/',
    file: 'file:///etc/passwd',
    none: null,
  };
  const redirects = [301, 302, 303, 307, 308].flatMap((status) =>
    Object.entries(locations).map(([name, location]) => ({ path: `${status}-${name}`, status, location })),
  );
  const others = [300, 304].map((status) => ({
    path: `${status}-login`,
    status,
    location: locations['login']!,
  }));
  const answers = [...redirects, ...others];
  stage.receiver.answer((request) => {
    const found = answers.find(({ path }) => `/${path}` === request.path);
    if (found === undefined) return 200;
    const { status, location } = found;
    return { status, headers: location === null ? {} : { location } };
  });
  for (const { path } of answers) await stage.addEndpoint(`${stage.receiver.url}/${path}`);
  // A retry that comes too late for this test: one attempt each.
  await stage.boot({ ...QUICK, WAYBILL_RETRY_SCHEDULE: '600' });
  await stage.publish(1);

  const attempts = await waitFor(
    async () => {
      const { rows } = await stage.pool.query<AttemptRow>(READ_ATTEMPTS);
      return rows.length === answers.length + 1 && rows;
    },
    { what: 'one attempt at each endpoint' },
  );
  for (const { path, status, location } of answers) {
    expect(attempts.filter((attempt) => attempt.path === path)).toEqual([
      {
        path,
        outcome: 'failed',
        status_code: status,
        error_kind: 'http_status',
        error: `the receiver answered ${status}${location === null ? '' : ` to ${location}`}`,
      },
    ]);
  }
  expect(login.requests).toEqual([]);
  // The bytes went out once each, as they are: nothing was repeated as a GET.
  expect(stage.receiver.requests).toHaveLength(answers.length + 1);
  expect(new Set(stage.receiver.requests.map(({ method }) => method))).toEqual(new Set(['POST']));
});
