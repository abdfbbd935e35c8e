// Awaited adds while the server is killed with SIGKILL: `interop/run kills`.
//
// Node's BullMQ adds jobs over several connections and waits for each id. The server is killed again and again. At the
// end every id that was given out must have its job, with the data of the caller who holds the id. So nothing
// acknowledged is lost, and no id is given out twice.
//
//   node kills.mjs engine|serve|redis always|everysec|never [adds] [kills]
//
// STAMPEDE names the binary. The figures are one line; the exit code is 1 if anything is lost.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';

const [target, policy, adds = '20000', kills = '20'] = process.argv.slice(2);
const PRODUCERS = 8;
const QUEUE = 'kills';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** How each server is run on a folder and a port. */
const targets = {
  engine: (folder, port) => ({
    command: [process.env.STAMPEDE, 'engine', '--port', port, '--dir', join(folder, 'engine'), '--fsync', policy],
    url: async () => `redis://127.0.0.1:${port}`,
  }),
  serve: (folder, port) => ({
    command: [process.env.STAMPEDE, 'serve'],
    env: { DATA_DIR: folder, PORT: port, ENGINE_FSYNC: policy, WORKER_MODE: 'api', ADMIN_KEY: 'kills-need-no-key-but-serve-does' },
    url: () => readFile(join(folder, 'engine.url'), 'utf8'),
  }),
  redis: (folder, port) => ({
    command: ['redis-server', '--port', port, '--dir', folder, '--save', '', '--appendonly', 'yes',
      '--appendfsync', policy === 'never' ? 'no' : policy],
    url: async () => `redis://127.0.0.1:${port}`,
  }),
};

/** A connection that fails at once when the server dies, and never sends a command twice. */
function connect(url) {
  const client = new Redis(url.trim(), {
    maxRetriesPerRequest: null,
    retryStrategy: () => null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  client.on('error', () => {});
  return client;
}

/** Starts a server and resolves when it answers. */
async function start({ command, env, url }) {
  const [program, ...args] = command.map(String);
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const gone = once(child, 'exit');
  const deadline = Date.now() + 60_000;
  for (;;) {
    const client = connect(await url().catch(() => 'redis://127.0.0.1:1'));
    try {
      await client.connect();
      await client.ping();
      return { child, gone, url: await url() };
    } catch (error) {
      if (Date.now() > deadline || child.exitCode !== null) throw error;
      await pause(20);
    } finally {
      client.disconnect();
    }
  }
}

/** Adds until the server dies or `over()`. */
async function produce(url, who, ledger, over) {
  const client = connect(url);
  try {
    await client.connect();
    const queue = new Queue(QUEUE, { connection: client });
    queue.on('error', () => {});
    await queue.waitUntilReady();
    for (let n = 0; !over(); n++) {
      const data = `${who}:${n}`;
      const job = await queue.add('x', { data });
      assert.ok(!ledger.has(job.id), `id ${job.id} was given to ${ledger.get(job.id)} and to ${data}`);
      ledger.set(job.id, data);
    }
  } catch (error) {
    if (error.code === 'ERR_ASSERTION') throw error;
  } finally {
    client.disconnect();
  }
}

/** The ids whose jobs are missing or hold other data. */
async function lost(url, ledger) {
  const client = connect(url);
  await client.connect();
  const missing = [];
  const ids = [...ledger.keys()];
  for (let from = 0; from < ids.length; from += 500) {
    const part = ids.slice(from, from + 500);
    const pipeline = client.pipeline();
    for (const id of part) pipeline.hget(`bull:${QUEUE}:${id}`, 'data');
    const found = await pipeline.exec();
    part.forEach((id, n) => {
      if (found[n][1] !== JSON.stringify({ data: ledger.get(id) })) missing.push(id);
    });
  }
  client.disconnect();
  return missing;
}

const folder = await mkdtemp(join(tmpdir(), 'stampede-kills-'));
const server = targets[target](folder, await freePort());
const ledger = new Map();
let missing = [];
let running;
try {
  for (let round = 0; round <= Number(kills); round++) {
    running = await start(server);
    missing = await lost(running.url, ledger);
    if (missing.length) break;
    const goal = Math.floor((Number(adds) * (round + 1)) / (Number(kills) + 1));
    const reached = () => ledger.size >= goal;
    const producers = Array.from({ length: PRODUCERS }, (_, n) =>
      produce(running.url, `${round}:${n}`, ledger, () => round === Number(kills) && reached()));
    if (round === Number(kills)) {
      await Promise.all(producers);
      missing = await lost(running.url, ledger);
    } else {
      while (!reached()) await Promise.race([pause(1), running.gone.then(() => assert.fail('the server died by itself'))]);
      running.child.kill('SIGKILL');
      await running.gone;
      await Promise.all(producers);
    }
  }
} finally {
  running?.child.kill('SIGKILL');
  await running?.gone;
  await rm(folder, { recursive: true, force: true });
}
console.log(`${target}, ${policy}: ${ledger.size} awaited adds acknowledged, ${kills} kills, ${missing.length} lost, no id twice`);
process.exit(missing.length ? 1 : 0);
