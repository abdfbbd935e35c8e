// Queue libraries before BullMQ: Bull and bee-queue. A producer here, workers in processes of their own.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { test } from 'node:test';
import Bee from 'bee-queue';
import Bull from 'bull';
import { eventually, heard, once } from './harness.mjs';
import { JOBS, ownServer } from './server.mjs';

const program = new URL('./processes/library-worker.mjs', import.meta.url);

/** The two libraries, with the same few verbs. */
const libraries = {
  bull: server => {
    const queue = new Bull('jobs', { redis: { host: '127.0.0.1', port: server.port } });
    queue.on('error', () => {});
    return {
      add: async (data, { delay, retries = 0 } = {}) => (await queue.add(data, { delay, attempts: retries + 1 })).id,
      // Read again once it is completed: a job that was read before does not change.
      result: async id => {
        const state = await (await queue.getJob(id)).getState();
        return state === 'completed' && { value: (await queue.getJob(id)).returnvalue };
      },
      close: () => queue.close(),
    };
  },
  'bee-queue': server => {
    const queue = new Bee('jobs', { isWorker: false, redis: { host: '127.0.0.1', port: server.port } });
    queue.on('error', () => {});
    // bee-queue keeps no results: it publishes them to whoever listens.
    const results = new Map();
    queue.on('job succeeded', (id, value) => results.set(id, value));
    return {
      add: async (data, { delay, retries = 0 } = {}) => {
        const job = queue.createJob(data).retries(retries);
        if (delay) job.delayUntil(Date.now() + delay);
        return (await job.save()).id;
      },
      result: async id => {
        const job = await queue.getJob(id);
        return job?.status === 'succeeded' && { value: results.get(id) };
      },
      close: () => queue.close(),
    };
  },
};

/** Starts a worker process, and notes every run of a job. */
async function startWorker(t, library, server, runs) {
  const child = fork(program, [library, String(server.port), 'jobs']);
  t.after(() => child.kill('SIGKILL'));
  child.on('message', ({ ran, at }) => ran !== undefined && runs.push({ ran, at }));
  await heard(child, 'message');
  return {
    async stop() {
      const ended = once(child, 'exit');
      child.send('stop');
      await ended;
    },
  };
}

const numbers = (from, to) => Array.from({ length: to - from }, (_, n) => from + n);

for (const [library, open] of Object.entries(libraries)) {
  async function opened(t) {
    const server = await ownServer(t);
    const queue = open(server);
    t.after(() => queue.close());
    return { server, queue, runs: [] };
  }

  test(`${library}: every job runs once and answers`, async t => {
    const { server, queue, runs } = await opened(t);
    await startWorker(t, library, server, runs);
    const ids = await Promise.all(numbers(0, JOBS).map(n => queue.add({ n })));
    for (const [n, id] of ids.entries()) assert.deepEqual(await eventually(() => queue.result(id)), { value: n * 2 });
    assert.deepEqual(runs.map(({ ran }) => ran).sort((a, b) => a - b), numbers(0, JOBS));
  });

  test(`${library}: a job is tried again, another waits for its time`, async t => {
    const { server, queue, runs } = await opened(t);
    await startWorker(t, library, server, runs);
    const due = Date.now() + 1000;
    const delayed = await queue.add({ n: 1 }, { delay: 1000 });
    const stumbles = await queue.add({ n: 2, stumbles: 2 }, { retries: 3 });
    assert.deepEqual(await eventually(() => queue.result(stumbles)), { value: 4 });
    assert.deepEqual(await eventually(() => queue.result(delayed)), { value: 2 });
    assert.equal(runs.filter(({ ran }) => ran === 2).length, 3);
    assert.ok(runs.find(({ ran }) => ran === 1).at >= due - 50);
  });

  test(`${library}: jobs outlive a stop and a kill of the server, and run once`, async t => {
    const server = await ownServer(t);
    const runs = [];
    // A producer for each life of the server: bee-queue does not load its scripts a second time.
    const withQueue = async work => {
      const queue = open(server);
      try {
        return await work(queue);
      } finally {
        await queue.close();
      }
    };
    const third = Math.floor(JOBS / 3);
    const add = from => withQueue(queue => Promise.all(numbers(from, from + third).map(n => queue.add({ n }))));
    const done = ids => withQueue(async queue => {
      for (const id of ids) await eventually(() => queue.result(id));
    });
    const ids = await add(0);
    // The worker ends when it has nothing to do: what it holds when a server dies, each library handles in its own way.
    const worker = await startWorker(t, library, server, runs);
    await done(ids);
    await worker.stop();
    ids.push(...(await add(third)));
    await server.restart('SIGTERM');
    ids.push(...(await add(2 * third)));
    await server.restart('SIGKILL');
    await startWorker(t, library, server, runs);
    await done(ids);
    assert.deepEqual(runs.map(({ ran }) => ran).sort((a, b) => a - b), numbers(0, 3 * third));
  });
}
