// Finds where the values inside a JSON text begin and end, so that their bytes can be sent as they were written:
// JSON.parse and JSON.stringify would change white space, escapes and the form of numbers.

/** The members of the object or array that begins at `start`: name or index, and the range of the value. */
export function* membersOf(text, start) {
  const isObject = text[start] === '{';
  let at = skipSpace(text, start + 1);
  for (let index = 0; text[at] !== '}' && text[at] !== ']'; index += 1) {
    let name = index;
    if (isObject) {
      const nameEnd = endOfString(text, at);
      name = JSON.parse(text.slice(at, nameEnd));
      at = skipSpace(text, skipSpace(text, nameEnd) + 1);
    }
    const end = endOfValue(text, at);
    yield { name, start: at, end };
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
}

function endOfValue(text, start) {
  if (text[start] === '"') return endOfString(text, start);
  if (text[start] !== '{' && text[start] !== '[') {
    let end = start;
    while (end < text.length && !/[\s,\]}]/.test(text[end])) end += 1;
    return end;
  }
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at) - 1;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
  throw new SyntaxError('the JSON text ends inside a value');
}

function endOfString(text, start) {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at + 1;
  }
  throw new SyntaxError('the JSON text ends inside a string');
}

function skipSpace(text, at) {
  let next = at;
  while (/\s/.test(text[next] ?? '')) next += 1;
  return next;
}
