// What every suite stands on: where the server is, and a stage per test.
//
// A stage gives a test queues, workers, listeners and raw clients under a key prefix of its own, so that test
// files can run side by side on one server. When the test ends it closes everything and deletes what is left.
// Tests wait for signals (`heard`, `eventually`), never for a fixed time; where a pause is the point, it says so.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { FlowProducer, Queue, QueueEvents, QueueEventsProducer, Relay, Worker } from 'bullmq';
import { Redis } from 'ioredis';

export { once, pause };

const address = process.env.REDIS_URL;
if (!address) {
  throw new Error('REDIS_URL says where the server is, for example redis://127.0.0.1:6379 or unix:/tmp/redis.sock');
}

/** ioredis options for a server address: `redis://[user:password@]host:port[/db]`, `unix:/path` or `/path`. */
export function optionsOf(url) {
  if (url.startsWith('/')) return { path: url };
  if (url.startsWith('unix:')) return { path: url.slice('unix:'.length).replace(/^\/\//, '') };
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port || 6379),
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(pathname.length > 1 && { db: Number(pathname.slice(1)) }),
  };
}

/** Options for one more connection. RESP=2 in the environment makes all of them speak the old protocol. */
export function connection(more = {}) {
  return { ...optionsOf(address), protocol: Number(process.env.RESP ?? 3), ...more };
}

/** Resolves with the arguments of the next `count` events, in order; rejects after `within` milliseconds. */
export function heard(emitter, event, count = 1, within = 60_000) {
  const all = [];
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      emitter.off(event, listen);
      reject(new Error(`heard ${all.length} of ${count} '${event}' within ${within} ms: ${JSON.stringify(all).slice(0, 500)}`));
    }, within);
    // Of two that race, the loser must not keep the process.
    late.unref();
    function listen(...args) {
      all.push(args);
      if (all.length < count) return;
      clearTimeout(late);
      emitter.off(event, listen);
      resolve(all);
    }
    emitter.on(event, listen);
  });
}

/** Calls `check` until it stops throwing and stops returning false. */
export async function eventually(check, within = 60_000) {
  const deadline = Date.now() + within;
  for (;;) {
    try {
      const found = await check();
      if (found !== false) return found;
      if (Date.now() > deadline) throw new Error(`still false after ${within} ms: ${check}`);
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await pause(10);
  }
}

/** A promise with its handles outside. */
export function signal() {
  let raise, fail;
  const raised = new Promise((resolve, reject) => ((raise = resolve), (fail = reject)));
  return { raise, fail, raised };
}

/** Everything one test needs, cleared away when it ends. */
export function stage(t, common = {}) {
  const prefix = common.prefix ?? `it-${randomBytes(6).toString('hex')}`;
  const name = `q-${randomBytes(3).toString('hex')}`;
  const open = [];
  const options = more => ({ connection: connection(common.connection), prefix, ...more });

  t.after(async () => {
    // Workers first, so that nothing is written after the sweep.
    for (const thing of open.reverse()) await thing.close();
    const sweeper = new Redis(connection(common.connection));
    for await (const keys of sweeper.scanStream({ match: `${prefix}:*`, count: 500 })) {
      if (keys.length) await sweeper.unlink(...keys);
    }
    await sweeper.quit();
  });

  const keep = thing => {
    thing.on?.('error', error => (thing.lastError = error));
    open.push(thing);
    return thing;
  };

  return {
    prefix,
    name,
    key: (...parts) => [prefix, ...parts].join(':'),
    keep,
    /** A raw client of the library that BullMQ uses. */
    raw(more) {
      const client = new Redis(connection({ ...common.connection, ...more }));
      client.on('error', () => {});
      open.push({ close: () => (client.status === 'end' ? undefined : client.quit().catch(() => client.disconnect())) });
      return client;
    },
    queue: (more, called = name) => keep(new Queue(called, options(more))),
    flow: more => keep(new FlowProducer(options(more))),
    relay: more => keep(new Relay(options(more))),
    producer: (called = name) => keep(new QueueEventsProducer(called, options())),
    worker(processor, more, called = name) {
      return keep(new Worker(called, processor, options({ drainDelay: 60, ...more })));
    },
    async events(more, called = name) {
      const events = keep(new QueueEvents(called, options({ lastEventId: '0-0', ...more })));
      await events.waitUntilReady();
      return events;
    },
    /** Ends a worker as a crash does: no goodbye, its jobs stay active. */
    async drop(worker) {
      open.splice(open.indexOf(worker), 1);
      await worker.close(true);
    },
  };
}

/** Waits until a worker's blocking connection waits for a marker. */
export async function blocked(raw, count = 1, command = 'bzpopmin', name = '') {
  return eventually(async () => {
    const waiting = clientsIn(await raw.client('LIST')).filter(c => c.cmd === command && c.name.startsWith(name));
    if (waiting.length < count) return false;
    return waiting;
  });
}

/** CLIENT LIST as objects. */
export function clientsIn(list) {
  return list
    .split('\n')
    .filter(Boolean)
    .map(line => Object.fromEntries(line.split(' ').map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])));
}

/** INFO as one object. */
export function fieldsIn(info) {
  return Object.fromEntries(
    info
      .split('\r\n')
      .filter(line => line && !line.startsWith('#'))
      .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}
