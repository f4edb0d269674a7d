/** A bell: one waiter sleeps until it rings or its time is up. A ring with nobody waiting is kept for the next. */
export class WakeUp {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    if (this.#wake === null) this.#rung = true;
    else this.#wake();
  }

  /** Resolves at the next ring, at once if it rang before, or after `timeoutMs`. */
  async sleep(timeoutMs: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = null;
    }
    this.#rung = false;
  }
}
