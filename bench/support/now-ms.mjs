/** Milliseconds since 1970 with their fraction, comparable between the processes of one machine. */
export function nowMs() {
  return performance.timeOrigin + performance.now();
}
