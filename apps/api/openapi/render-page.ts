import type { OpenapiDocument } from './document.js';
import { anchorOf, code, element, escape, markUp, methodBadge } from './html.js';
import { renderOperation, type ShownComponents, type ShownOperation } from './render-operation.js';
import { renderSchema } from './render-schema.js';
import { STYLE } from './style.js';

interface ShownDocument extends OpenapiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly components: ShownComponents;
}

/** The reference as one page that needs no script: what it may load is the style sheet that stands in it. */
export function renderPage(given: OpenapiDocument): string {
  const document = given as ShownDocument;
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...(operation as ShownOperation), method, path })),
  );
  const groups = document.tags.map((tag) => ({
    ...tag,
    operations: operations.filter(({ tags }) => tags.includes(tag.name)),
  }));
  const { info, components } = document;
  const navigation = groups.map(
    (group) =>
      element('h2', markUp(titleOf(group.name))) +
      element(
        'ul',
        group.operations
          .map(({ operationId, method, path }) =>
            element('li', `<a href="#${operationId}">${methodBadge(method)} ${code(path)}</a>`),
          )
          .join(''),
      ),
  );
  const sections = groups.map(
    (group) =>
      `<section><h2 id="${anchorOf(group.name)}">${escape(titleOf(group.name))}</h2><p>${markUp(group.description)}</p>` +
      `${group.operations.map((operation) => renderOperation(operation, components)).join('')}</section>`,
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) => renderSchema(name, schema));
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escape(info.title)} API ${escape(info.version)}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    '<a class="skip" href="#reference">Skip to the reference</a>',
    `<nav aria-label="Operations">${navigation.join('')}<h2><a href="#schemas">Schemas</a></h2></nav>`,
    '<main id="reference">',
    `<h1>${escape(info.title)} API <small>${escape(info.version)}</small></h1>`,
    ...info.description.split('\n\n').map((paragraph) => `<p>${markUp(paragraph)}</p>`),
    `<p>For programs: <a href="openapi.json">openapi.json</a> (OpenAPI ${escape(String(document['openapi']))}).</p>`,
    ...sections,
    '<section><h2 id="schemas">Schemas</h2>',
    ...schemas,
    '</section>',
    '</main>',
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function titleOf(tag: string): string {
  return `${tag.charAt(0).toUpperCase()}${tag.slice(1)}`;
}
