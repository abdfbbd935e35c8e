// A server of its own for a test that stops and kills it: ENGINE, or redis-server without it. It keeps its port and its
// data over restarts, and acknowledges nothing that is not on the disk.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually, once } from './harness.mjs';

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

/** Starts a server that ends with the test. */
export async function ownServer(t) {
  const folder = await mkdtemp(join(tmpdir(), 'interop-server-'));
  const port = await freePort();
  let child;

  async function start() {
    const data = ['--port', String(port), '--dir', folder];
    child = process.env.ENGINE
      ? spawn(process.env.ENGINE, ['engine', ...data, '--fsync', 'always'], { stdio: 'ignore' })
      : spawn('redis-server', [...data, '--appendonly', 'yes', '--appendfsync', 'always'], { stdio: 'ignore' });
    await eventually(async () => {
      const client = new Redis({ host: '127.0.0.1', port, retryStrategy: null, lazyConnect: true });
      client.on('error', () => {});
      try {
        await client.connect();
        return (await client.ping()) === 'PONG';
      } finally {
        client.disconnect();
      }
    });
  }

  async function end(signal) {
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  t.after(async () => {
    await end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });
  await start();
  return {
    port,
    /** Ends the server with a signal and starts it again. */
    async restart(signal) {
      await end(signal);
      await start();
    },
  };
}

/** The number of jobs of a test with a library. */
export const JOBS = Number(process.env.JOBS ?? 200);
