const undone = [];

/** Registers what undoes a start; returns the same function, which runs at most once, whoever calls it first. */
export function onCleanUp(undo) {
  let done;
  const once = () => {
    const at = undone.indexOf(once);
    if (at !== -1) undone.splice(at, 1);
    return (done ??= Promise.resolve(undo()));
  };
  undone.push(once);
  return once;
}

let cleaning = null;

/** Undoes everything that still stands, the newest first. One failure does not keep the rest alive. */
export function cleanUp() {
  return (cleaning ??= undoAll());
}

async function undoAll() {
  while (undone.length > 0) {
    try {
      await undone.at(-1)();
    } catch (error) {
      process.stderr.write(`bench: ${error.message}\n`);
    }
  }
}
