// BullMQ over node-redis, the other client it supports: another handshake, another reading of the replies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNodeRedisClient, FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { createClient } from 'redis';
import { connection, heard, stage } from './harness.mjs';

for (const RESP of [2, 3]) {
  test(`queue, worker, events and flow over node-redis, RESP${RESP}`, async t => {
    const s = stage(t);
    const { host, port, path, password } = connection();
    const open = [];
    const client = async () => {
      const raw = createClient({ RESP, socket: path ? { path } : { host, port }, password });
      raw.on('error', () => {});
      const wrapped = createNodeRedisClient(raw);
      await wrapped.connect();
      open.push(wrapped);
      return wrapped;
    };
    t.after(async () => {
      for (const one of open) await one.quit().catch(() => {});
    });
    const made = async (Kind, ...args) => s.keep(new Kind(...args.slice(0, -1), { connection: await client(), prefix: s.prefix, ...args.at(-1) }));

    const queue = await made(Queue, s.name, {});
    const events = await made(QueueEvents, s.name, { lastEventId: '0-0' });
    await events.waitUntilReady();
    const worker = await made(Worker, s.name, async job => job.data.n * 2, {});
    const done = heard(worker, 'completed', 4);
    const job = await queue.add('x', { n: 21 });
    assert.equal(await job.waitUntilFinished(events, 60_000), 42);
    await queue.addBulk([1, 2, 3].map(n => ({ name: 'x', data: { n } })));
    await done;
    assert.deepEqual(await queue.getJobCounts('completed', 'wait'), { completed: 4, wait: 0 });
    await queue.upsertJobScheduler('later', { every: 60_000, startDate: Date.now() + 60_000 });
    assert.equal((await queue.getJobSchedulers()).length, 1);
    assert.equal(await queue.getWorkersCount(), 1);
    const flow = await made(FlowProducer, {});
    const tree = await flow.add({ name: 'p', queueName: 'parents', children: Array.from({ length: 10 }, (_, n) => ({ name: 'c', queueName: 'idle', data: { n } })) });
    const { unprocessed, nextUnprocessedCursor } = await tree.job.getDependencies({ unprocessed: { cursor: 0, count: 20 } });
    assert.equal(unprocessed.length, 10);
    assert.equal(Number(nextUnprocessedCursor), 0);
  });
}
