import { expect, it } from 'vitest';
import { Turns } from './turns.js';

it('runs work of one name in order, one at a time, and that of another beside it', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const open = new Map<string, () => void>();
  const work = (name: string) => () => {
    seen.push(name);
    return new Promise<string>((resolve) => open.set(name, () => resolve(name)));
  };
  const first = turns.take('key', 10_000, work('first'));
  const second = turns.take('key', 10_000, work('second'));
  const other = turns.take('other', 10_000, work('other'));
  await expect.poll(() => seen).toEqual(['first', 'other']);
  open.get('other')!();
  expect(await other).toEqual({ result: 'other' });
  open.get('first')!();
  expect(await first).toEqual({ result: 'first' });
  await expect.poll(() => seen).toEqual(['first', 'other', 'second']);
  open.get('second')!();
  expect(await second).toEqual({ result: 'second' });
});

it('gives up a turn that does not come in time, without letting a later one pass the one at work', async () => {
  const turns = new Turns();
  let release!: () => void;
  const busy = turns.take('key', 10_000, () => new Promise<void>((resolve) => (release = resolve)));
  expect(await turns.take('key', 1, () => Promise.resolve('never'))).toBeNull();
  let ran = false;
  const later = turns.take('key', 10_000, () => Promise.resolve((ran = true)));
  expect(ran).toBe(false);
  release();
  await busy;
  expect(await later).toEqual({ result: true });
});

it('goes on after work that fails', async () => {
  const turns = new Turns();
  const failed = turns.take('key', 10_000, () => Promise.reject(new Error('no')));
  const next = turns.take('key', 10_000, () => Promise.resolve(1));
  await expect(failed).rejects.toThrow('no');
  expect(await next).toEqual({ result: 1 });
});
