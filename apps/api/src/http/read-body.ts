import type { IncomingMessage } from 'node:http';
import { AppError } from '#runtime';

const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?;?$/i;

/**
 * The raw bytes of a JSON body of at most `bytesMax`. Refuses another content type, any content coding (nothing is
 * ever unpacked) and a longer body, the last as soon as its length is announced or passed.
 */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  if (request.headers['content-encoding'] !== undefined) throw new AppError('unsupported_content_encoding');
  if (!JSON_TYPE.test((request.headers['content-type'] ?? '').trim()))
    throw new AppError('unsupported_content_type');
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  return takeWhole(request, bytesMax) ?? collect(request, bytesMax);
}

/**
 * A body that is here already, as most are once the key was looked up, read without the four listeners that reading it
 * piece by piece takes.
 */
function takeWhole(request: IncomingMessage, bytesMax: number): Buffer | null {
  if (!request.complete || request.destroyed || request.readableLength > bytesMax) return null;
  return (request.read() as Buffer | null) ?? Buffer.alloc(0);
}

function collect(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = (): void => {
      request.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= bytesMax) {
        chunks.push(chunk);
        return;
      }
      stop();
      request.resume();
      reject(tooLarge(bytesMax));
    };
    const onEnd = (): void => {
      stop();
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size));
    };
    const onBroken = (): void => {
      stop();
      reject(new AppError('invalid_request', 'The connection ended before the body did.'));
    };
    request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
    if (request.destroyed) onBroken();
  });
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('body_too_large', `The body is larger than ${bytesMax} bytes.`);
}
