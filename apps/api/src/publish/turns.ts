/**
 * Lets work of one name run one after the other in this process; different names never wait for each other. Whoever
 * waits holds nothing but memory.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs `work` when those before it under the name are through; gives null if they are not within `waitMs`. */
  async take<Result>(
    name: string,
    waitMs: number,
    work: () => Promise<Result>,
  ): Promise<{ readonly result: Result } | null> {
    const before = this.#last.get(name) ?? Promise.resolve();
    let done!: () => void;
    const own = new Promise<void>((resolve) => (done = resolve));
    const tail = before.then(() => own);
    this.#last.set(name, tail);
    try {
      if (!(await endsWithin(before, waitMs))) return null;
      return { result: await work() };
    } finally {
      done();
      if (this.#last.get(name) === tail) this.#last.delete(name);
    }
  }
}

async function endsWithin(work: Promise<void>, waitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, waitMs));
  });
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer));
}
