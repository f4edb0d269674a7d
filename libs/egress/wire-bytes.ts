/** Bytes that mean something to HTTP/1.1. */
export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SPACE = 0x20;

/** 1 for each byte that a field's value, a reason or a chunk's extension may hold: tab, space, visible, 0x80 and above. */
export const TEXT = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte === TAB || (byte >= SPACE && byte !== 0x7f) ? 1 : 0,
);

/** What a field's name is made of (RFC 9110, 5.6.2). */
export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
