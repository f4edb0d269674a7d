import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../auth/require-scope.js';
import { Operation } from '../http/operation.js';
import { pagePolicy, readReference, type ReferenceFile } from './read-reference.js';

/** A new version shows within this time; until then a browser need not ask. */
const CACHE_CONTROL = 'public, max-age=300';

/** /docs and /openapi.json: the reference, for people and for programs. Read once, on the first request for it. */
@Public()
@Controller()
export class DocsController {
  private page: (ReferenceFile & { readonly policy: string }) | null = null;
  private document: ReferenceFile | null = null;

  @Operation({ id: 'readDocs', summary: 'Read the reference as a page' })
  @Get('docs')
  showPage(@Req() request: Request, @Res() response: Response): void {
    this.page ??= withPolicy(readReference('openapi.html'));
    response.setHeader('content-security-policy', this.page.policy);
    response.setHeader('referrer-policy', 'no-referrer');
    send(request, response, this.page, 'text/html; charset=utf-8');
  }

  @Operation({ id: 'readOpenapi', summary: 'Read this document' })
  @Get('openapi.json')
  showDocument(@Req() request: Request, @Res() response: Response): void {
    this.document ??= readReference('openapi.json');
    send(request, response, this.document, 'application/json; charset=utf-8');
  }
}

function knows(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

function withPolicy(file: ReferenceFile): ReferenceFile & { readonly policy: string } {
  return { ...file, policy: pagePolicy(file.bytes) };
}

function send(request: Request, response: Response, { bytes, etag }: ReferenceFile, type: string): void {
  response.setHeader('cache-control', CACHE_CONTROL);
  response.setHeader('etag', etag);
  if (knows(request.headers['if-none-match'], etag)) {
    response.statusCode = 304;
    response.end();
    return;
  }
  response.setHeader('content-type', type);
  response.setHeader('content-length', bytes.length);
  response.end(bytes);
}
