/** How many of each there are; what is at zero takes no room. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, difference: number): void {
    const count = this.of(name) + difference;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }

  /** The names of which there are so many or more. */
  atLeast(count: number): string[] {
    return [...this.#counts].filter(([, found]) => found >= count).map(([name]) => name);
  }
}
