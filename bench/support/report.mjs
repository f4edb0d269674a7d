import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { ROOT } from '../../scripts/launch/home.mjs';

/** The middle of the values, or the mean of the two in the middle. */
export function median(values) {
  return quantile(values, 0.5);
}

/** The value below which that share of the values lies, interpolated. */
export function quantile(values, share) {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const low = sorted[Math.floor(place)];
  return low + (sorted[Math.ceil(place)] - low) * (place - Math.floor(place));
}

/** Rounds to three digits that count, so that a figure does not pretend to more. */
export function round(value) {
  return Number(value.toPrecision(3));
}

/** Prints rows of {column: value} as a table on standard output. */
export function printTable(title, rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = [columns, ...rows.map((row) => columns.map((column) => cellText(row[column])))];
  const widths = columns.map((_, place) => Math.max(...cells.map((line) => line[place].length)));
  console.log(`\n${title}`);
  for (const line of cells) {
    const padded = line.map((cell, place) =>
      place === 0 ? cell.padEnd(widths[place]) : cell.padStart(widths[place]),
    );
    console.log(`  ${padded.join('  ').trimEnd()}`);
  }
}

/** One line that says what was measured on: processors, memory, system, Node, and PostgreSQL where there was one. */
export function machineText(postgresVersion) {
  const processors = cpus();
  const memoryGb = Math.round(totalmem() / 1024 ** 3);
  const model = processors[0].model.trim();
  const text = `${processors.length} × ${model}, ${memoryGb} GB, ${process.platform} ${release()}, Node ${process.versions.node}`;
  return postgresVersion === undefined ? text : `${text}, PostgreSQL ${postgresVersion}`;
}

/** The commit that is measured; `+` says that the tree holds more than it. */
export function commitText() {
  const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') !== '';
    return git('rev-parse', 'HEAD') + (changed ? '+' : '');
  } catch {
    return 'unknown';
  }
}

function cellText(value) {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'number') return String(value);
  return round(value).toLocaleString('en', { maximumFractionDigits: 3 });
}
