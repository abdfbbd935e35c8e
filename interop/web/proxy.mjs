// A proxy that changes, loses or delays answers on their way.

import { once } from 'node:events';
import http from 'node:http';

import { atEnd } from './ending.mjs';

/**
 * `hooks.answer(path, body)` returns what is passed on; null: the connection breaks off.
 * `hooks.instead(path, body)` may answer itself, with `{ status, body }`, or delay the question.
 */
export async function startProxy(port) {
  const hooks = { answer: (_path, body) => body, instead: (_path, _body) => null, seen: [] };
  const server = http.createServer(async (request, response) => {
    const { method, headers, url: path } = request;
    const asked = [];
    for await (const part of request) asked.push(part);
    const question = Buffer.concat(asked);
    const own = path.startsWith('/api/') ? await hooks.instead(path, question.toString()) : null;
    if (own) {
      response.writeHead(own.status, { 'content-type': 'application/json' }).end(JSON.stringify(own.body));
      return;
    }
    const onward = http.request({ host: '127.0.0.1', port, method, path, headers: { ...headers, 'accept-encoding': 'identity' } }, answer => {
      const parts = [];
      answer.on('data', part => parts.push(part));
      answer.on('end', async () => {
        hooks.seen.push(`${method} ${path} ${answer.statusCode}`);
        const body = Buffer.concat(parts);
        const changed = path.startsWith('/api/') ? await hooks.answer(path, body.toString()) : body;
        if (changed === null) return request.socket.destroy();
        const kept = { ...answer.headers };
        delete kept['content-length'];
        delete kept['transfer-encoding'];
        response.writeHead(answer.statusCode, kept).end(changed);
      });
    });
    onward.on('error', () => request.socket.destroy());
    onward.end(question);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { hooks, url: `http://127.0.0.1:${server.address().port}` };
}
