import process from 'node:process';

/** Colours for a stream: none unless it is a terminal and NO_COLOR is unset. */
export function paintFor(stream) {
  const on = Boolean(stream.isTTY) && !process.env.NO_COLOR;
  const wrap = (code) => (text) => (on ? `\u001B[${code}m${text}\u001B[0m` : String(text));
  return {
    bold: wrap('1'),
    dim: wrap('2'),
    red: wrap('31'),
    green: wrap('32'),
    yellow: wrap('33'),
    cyan: wrap('36'),
  };
}

/** The time of day as a log line shows it, with milliseconds. */
export function clockText(date = new Date()) {
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}

function pad(value, width = 2) {
  return String(value).padStart(width, '0');
}
