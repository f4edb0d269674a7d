import type { RunningApp } from './apps.js';

/** One number without labels from the metrics of an app. */
export async function readGauge(app: RunningApp, name: string): Promise<number> {
  const text = await (await fetch(new URL('/metrics', app.url))).text();
  const line = text.split('\n').find((found) => found.startsWith(`${name} `));
  if (line === undefined) throw new Error(`${name} is not among the metrics`);
  return Number(line.slice(name.length + 1));
}
