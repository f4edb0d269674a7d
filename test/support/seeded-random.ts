/** A source of randomness that the same seed repeats. */
export interface SeededRandom {
  readonly seed: number;
  /** A whole number from 0 to below `end`. */
  below(end: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** True with this probability. */
  chance(probability: number): boolean;
  bytes(length: number): Buffer;
}

/** Makes one from WAYBILL_TEST_SEED, or from a fresh seed that is printed, so that a failure can be run again. */
export function seededRandom(what: string): SeededRandom {
  const given = Number(process.env['WAYBILL_TEST_SEED']);
  const seed = Number.isInteger(given) && given > 0 ? given : 1 + Math.floor(Math.random() * 0x7fff_fffe);
  process.stdout.write(`${what}: WAYBILL_TEST_SEED=${seed}\n`);
  let state = seed;
  // mulberry32: 32 bits of state are plenty for choosing test inputs.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return {
    seed,
    below,
    pick: (items) => items[below(items.length)]!,
    chance: (probability) => next() < probability,
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}
