import { readFileSync } from 'node:fs';

import { expect } from 'vitest';

/** What something may cost. */
export interface Budget {
  readonly what: string;
  /** What it cost when the ceiling was last set. */
  readonly measured: number;
  /** Oldest first; the last one holds. One that is higher than the one before it says why. */
  readonly ceilings: readonly { readonly value: number; readonly reason: string }[];
}

/** All budgets of the project, by name. */
export const BUDGETS: Readonly<Record<string, Budget>> = JSON.parse(
  readFileSync(new URL('../budgets.json', import.meta.url), 'utf8'),
);

/** Fails when a cost is over its ceiling; `details` go with the failure. `WAYBILL_TEST_BUDGETS=print` shows every cost. */
export function expectWithinBudget(name: string, measured: number, details = ''): void {
  const ceiling = BUDGETS[name]?.ceilings.at(-1)?.value;
  if (ceiling === undefined) throw new Error(`test/budgets.json has no budget ${name}`);
  if (process.env['WAYBILL_TEST_BUDGETS'] === 'print')
    process.stdout.write(`${name}: ${measured}\n${details}\n`);
  expect(measured, `${name} (ceilings stand in test/budgets.json)\n${details}`).toBeLessThanOrEqual(ceiling);
}
