/** Drops a UTF-8 character that the end of these bytes has cut in two; bytes that are no UTF-8 stay as they are. */
export function cutUtf8(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > 0 && start > bytes.length - 4 && isContinuation(bytes[start])) start -= 1;
  const wanted = lengthByLeadByte(bytes[start]);
  return wanted > bytes.length - start ? bytes.subarray(0, start) : bytes;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function lengthByLeadByte(byte: number | undefined): number {
  if (byte === undefined || byte < 0xc2) return 1;
  if (byte < 0xe0) return 2;
  if (byte < 0xf0) return 3;
  return byte < 0xf5 ? 4 : 1;
}
