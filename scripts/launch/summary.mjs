const DEFAULT_API_URL = 'http://127.0.0.1:8420';

/** What a newcomer needs after the start: where things are, the key, and two commands to paste in order. */
export function summaryText({ apiUrl, key, keyFile, data, logs, notes }, paint) {
  const rows = [
    ['API', paint.bold(apiUrl)],
    ['Admin key', keyRow(key, keyFile, paint)],
    ['Data', data],
    ['Logs', logs],
  ];
  const facts = rows.map(([name, value]) => `  ${paint.dim(name.padEnd(10))} ${value}`);
  const remarks = notes.map((note) => `  ${paint.yellow('Note')}       ${note}`);
  return [
    '',
    `  ${paint.green('●')} ${paint.bold('Waybill is up')}`,
    '',
    ...facts,
    ...remarks,
    '',
    ...steps({ apiUrl, key, keyFile }, paint),
    '',
  ].join('\n');
}

function keyRow(key, keyFile, paint) {
  if (!key) return paint.dim('shown once, at the first start of this database');
  return keyFile
    ? `${key} ${paint.dim(`(kept in ${keyFile})`)}`
    : `${key} ${paint.yellow('(shown this once: keep it)')}`;
}

function steps({ apiUrl, key, keyFile }, paint) {
  const flags = [
    ...(apiUrl === DEFAULT_API_URL ? [] : ['--api', apiUrl]),
    ...(keyFile ? [] : ['--key', key ?? 'YOUR_KEY']),
  ];
  const receiver = ['npm run receiver', ...(flags.length > 0 ? ['--', ...flags] : [])].join(' ');
  const payload = '{"event_type":"order.shipped","payload":{"order":"A-1001","parcels":2}}';
  return [
    `  ${paint.bold('1')}  In a second terminal, a receiver that registers itself and verifies what arrives:`,
    '',
    `     ${paint.cyan(receiver)}`,
    '',
    `  ${paint.bold('2')}  In a third, an event for it:`,
    '',
    `     ${paint.cyan(`curl -sS ${apiUrl}/v1/events \\`)}`,
    `     ${paint.cyan(`  -H 'authorization: Bearer ${key ?? 'YOUR_KEY'}' \\`)}`,
    `     ${paint.cyan("  -H 'content-type: application/json' \\")}`,
    `     ${paint.cyan(`  -d '${payload}'`)}`,
    '',
    ...(keyFile ? [`  ${paint.dim('npx waybill doctor examines it all, here, while it runs.')}`] : []),
    `  ${paint.dim('Ctrl-C stops everything; the data stays.')}`,
  ];
}
