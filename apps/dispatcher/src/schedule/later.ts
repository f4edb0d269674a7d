/** What comes back at a time of its own, soonest first: a binary heap, since thousands of endpoints may wait at once. */
export class Later<Item> {
  readonly #heap: { readonly atMs: number; readonly item: Item }[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** When the first one comes back; infinite when nothing waits. */
  get nextAtMs(): number {
    return this.#heap[0]?.atMs ?? Infinity;
  }

  add(atMs: number, item: Item): void {
    const heap = this.#heap;
    let place = heap.push({ atMs, item }) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (heap[parent]!.atMs <= heap[place]!.atMs) break;
      swap(heap, parent, place);
      place = parent;
    }
  }

  /** Takes out the first one if its time has come. */
  take(nowMs: number): Item | undefined {
    const heap = this.#heap;
    if (heap.length === 0 || heap[0]!.atMs > nowMs) return undefined;
    const { item } = heap[0]!;
    const last = heap.pop()!;
    if (heap.length > 0) {
      heap[0] = last;
      sink(heap);
    }
    return item;
  }
}

function sink(heap: { readonly atMs: number }[]): void {
  for (let place = 0; ;) {
    const left = 2 * place + 1;
    const right = left + 1;
    let soonest = place;
    if (left < heap.length && heap[left]!.atMs < heap[soonest]!.atMs) soonest = left;
    if (right < heap.length && heap[right]!.atMs < heap[soonest]!.atMs) soonest = right;
    if (soonest === place) return;
    swap(heap, soonest, place);
    place = soonest;
  }
}

function swap(heap: unknown[], one: number, other: number): void {
  [heap[one], heap[other]] = [heap[other], heap[one]];
}
