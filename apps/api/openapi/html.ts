const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as HTML shows it. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character]!);
}

/** Text whose backticks mark code. */
export function markUp(text: string): string {
  return escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

/** Text as code. */
export function code(text: string): string {
  return `<code>${escape(text)}</code>`;
}

/** Lines as they stand; reachable by keyboard, since a long line scrolls. */
export function block(text: string, label: string): string {
  return `<pre tabindex="0" aria-label="${escape(label)}">${escape(text)}</pre>`;
}

/** An element around HTML. */
export function element(name: string, html: string): string {
  return `<${name}>${html}</${name}>`;
}

/** A table of HTML cells; nothing when it has no rows. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const cells = (name: string, row: readonly string[]) =>
    element('tr', row.map((cell) => element(name, cell)).join(''));
  return (
    `<div class="wide" tabindex="0" role="group" aria-label="${escape(head.join(', '))}"><table><thead>${cells('th', head)}</thead>` +
    `<tbody>${rows.map((row) => cells('td', row)).join('')}</tbody></table></div>`
  );
}

/** A name as an anchor. */
export function anchorOf(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9]+/g, '-');
}

/** The method of an operation, as a mark beside its path. */
export function methodBadge(method: string): string {
  return `<span class="method">${method.toUpperCase()}</span>`;
}
