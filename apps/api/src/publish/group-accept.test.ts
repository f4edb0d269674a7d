import { describe, expect, it } from 'vitest';
import type { AcceptResult, EventInput } from '#outbox';
import { createGroupAccept, ACCEPT_LIMITS } from './group-accept.js';

function event(name: string, bytes = 1): EventInput {
  return {
    tenantId: 't',
    eventType: name,
    payload: Buffer.alloc(bytes),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: null,
  };
}

function accepted(input: EventInput): AcceptResult {
  return {
    kind: 'accepted',
    event: {
      id: input.eventType,
      consumerId: null,
      eventType: input.eventType,
      createdAt: new Date(0),
      deliveries: [],
    },
  };
}

/** A database that keeps every group until it is told to answer. */
function openDatabase(answer: (inputs: readonly EventInput[]) => AcceptResult[]) {
  const groups: string[][] = [];
  const waiting: (() => void)[] = [];
  return {
    groups,
    release(): void {
      for (const go of waiting.splice(0)) go();
    },
    async accept(inputs: readonly EventInput[]): Promise<AcceptResult[]> {
      groups.push(inputs.map((input) => input.eventType));
      await new Promise<void>((resolve) => waiting.push(resolve));
      return answer(inputs);
    },
  };
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

async function outcomes(work: readonly Promise<AcceptResult>[]): Promise<string[]> {
  const settled = await Promise.allSettled(work);
  return settled.map((one) => (one.status === 'fulfilled' ? one.value.kind : (one.reason as Error).message));
}

describe('group accept', () => {
  it('sends what came in one turn at once, and gathers what comes while its flights are full', async () => {
    const database = openDatabase((inputs) => inputs.map(accepted));
    const accept = createGroupAccept((inputs) => database.accept(inputs));
    const endOfTurn = () => new Promise((resolve) => setImmediate(resolve));
    const work = [accept(event('a')), accept(event('b'))];
    await endOfTurn();
    work.push(accept(event('c')));
    await endOfTurn();
    work.push(accept(event('d')), accept(event('e')));
    await endOfTurn();
    expect(database.groups).toEqual([['a', 'b'], ['c']]);
    database.release();
    await Promise.all(work.slice(0, 3));
    expect(database.groups).toEqual([['a', 'b'], ['c'], ['d', 'e']]);
    database.release();
    const ids = (await Promise.all(work)).map((result) => result.kind === 'accepted' && result.event.id);
    expect(ids).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('closes a group at its limit of events and of bytes', async () => {
    const groups: number[] = [];
    const accept = createGroupAccept(
      (inputs) => {
        groups.push(inputs.length);
        return Promise.resolve(inputs.map(accepted));
      },
      { inputsMax: 3, bytesMax: 10, flightsMax: 1 },
    );
    await Promise.all([1, 1, 1, 1, 1, 9, 11, 1].map((bytes, at) => accept(event(`e${at}`, bytes))));
    expect(groups).toEqual([3, 2, 1, 1, 1]);
  });

  it('fails only the event that the database refuses', async () => {
    const accept = createGroupAccept(
      (inputs) =>
        inputs.some((input) => input.eventType === 'bad')
          ? Promise.reject(failure('22P05'))
          : Promise.resolve(inputs.map(accepted)),
      { ...ACCEPT_LIMITS, flightsMax: 1 },
    );
    const names = ['a', 'b', 'bad', 'c', 'd', 'e'];
    const work = names.map((name) => accept(event(name)));
    expect(await outcomes(work)).toEqual([
      'accepted',
      'accepted',
      '22P05',
      'accepted',
      'accepted',
      'accepted',
    ]);
  });

  it.each(['57P01', 'ECONNRESET', '57014', 'unknown'])('never runs a group again after %s', async (code) => {
    let runs = 0;
    const accept = createGroupAccept(
      () => {
        runs += 1;
        return Promise.reject(failure(code));
      },
      { ...ACCEPT_LIMITS, flightsMax: 1 },
    );
    expect(await outcomes(['a', 'b', 'c', 'd'].map((name) => accept(event(name))))).toEqual([
      code,
      code,
      code,
      code,
    ]);
    expect(runs).toBe(1);
    expect(await outcomes([accept(event('later'))])).toEqual([code]);
  });
});
