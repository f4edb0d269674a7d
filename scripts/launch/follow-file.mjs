import { closeSync, openSync, readSync, statSync, watch } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

const CHUNK_BYTES = 65_536;

/**
 * Calls `onLine` with every line that is added to the file from now on. The returned function reads what is left and
 * ends it.
 */
export function followFile(path, onLine) {
  const fd = openSync(path, 'r');
  const buffer = Buffer.alloc(CHUNK_BYTES);
  const decoder = new StringDecoder('utf8');
  let position = statSync(path).size;
  let rest = '';
  const readOn = () => {
    for (;;) {
      const bytes = readSync(fd, buffer, 0, CHUNK_BYTES, position);
      if (bytes === 0) return;
      position += bytes;
      const lines = (rest + decoder.write(buffer.subarray(0, bytes))).split('\n');
      rest = lines.pop();
      for (const line of lines) onLine(line);
    }
  };
  const watcher = watch(path, { persistent: false }, readOn);
  return () => {
    watcher.close();
    readOn();
    if (rest !== '') onLine(rest);
    closeSync(fd);
  };
}
