import { describe, expect, it } from 'vitest';

import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { rowCounts } from '../support/row-counts.js';

const stage = new ApiStage();

describe('a uid', () => {
  it.each<[string, unknown]>([
    ['blank', ''],
    ['white space', ' '],
    ['a tab', '\t'],
    ['a space before it', ' a'],
    ['a space behind it', 'a '],
    ['a space that does not break behind it', 'a\u00a0'],
    ['a NUL', 'a\0b'],
    ['a line feed', 'a\nb'],
    ['a lone surrogate', 'a\ud800'],
    ['a character that nobody sees', 'a\u200bb'],
    ['a line separator', 'a\u2028b'],
    ['256 characters', 'x'.repeat(256)],
    ['the beginning of an id', 'con_'],
    ['a way up', '..'],
    ['missing', undefined],
    ['null', null],
    ['a number', 5],
    ['a list', ['a']],
    ['an object', { uid: 'a' }],
  ])('[row 69] that is %s is refused with 400, and nothing is stored', async (_what, uid) => {
    const before = await rowCounts(stage.pool);
    const code = 'invalid_consumer_uid';
    expectProblem(await stage.client.post('/v1/consumers', { uid }), 400, code);
    const published = await stage.client.post('/v1/events', { event_type: 'a.b', payload: 1, consumer: uid });
    const created = await stage.client.post('/v1/endpoints', { url: stage.receiver.url, consumer: uid });
    if (uid === 'con_') {
      for (const answer of [published, created]) expectProblem(answer, 400, 'invalid_id');
    } else if (uid !== undefined && uid !== null) {
      for (const answer of [published, created])
        expect(expectProblem(answer, 400, code).details).toEqual([{ field: 'consumer', reason: 'invalid' }]);
      expect(await rowCounts(stage.pool)).toEqual(before);
    }
  });

  it.each(['%20', '%00', 'a%0Ab', '%20a', '%E2%80%8B'])('is refused in a path too: %s', async (uid) => {
    for (const path of [`/v1/consumers/${uid}`, `/v1/consumers?uid=${uid}`, `/v1/events?consumer=${uid}`])
      expectProblem(await stage.client.get(path), 400, 'invalid_consumer_uid');
  });

  it.each(['con_', 'con_x', `con_${'F'.repeat(32)}`, `con_${'0'.repeat(31)}`])(
    'that begins as an id is taken for one: %s',
    async (id) => {
      for (const path of [
        `/v1/consumers/${id}`,
        `/v1/deliveries?consumer=${id}`,
        `/v1/endpoints?consumer=${id}`,
      ])
        expectProblem(await stage.client.get(path), 400, 'invalid_id');
    },
  );

  it('given twice in a query is refused', async () => {
    expectProblem(await stage.client.get('/v1/consumers?uid=a&uid=b'), 400, 'invalid_consumer_uid');
    expectProblem(await stage.client.get('/v1/events?consumer=a&consumer=b'), 400, 'invalid_consumer_uid');
  });
});
