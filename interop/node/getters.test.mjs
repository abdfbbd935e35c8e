// Reading queues: pages, metrics, workers, exports.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, heard, pause, stage } from './harness.mjs';

test('pages of finished jobs come newest or oldest first', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async job => job.data.n, { concurrency: 1 });
  const all = heard(worker, 'completed', 30);
  await queue.addBulk(Array.from({ length: 30 }, (_, n) => ({ name: 'x', data: { n } })));
  await all;
  const oldest = (await queue.getJobs('completed', 0, 9, true)).map(job => job.returnvalue);
  const newest = (await queue.getCompleted(0, 9)).map(job => job.returnvalue);
  assert.deepEqual([...oldest].sort((a, b) => a - b), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual([...newest].sort((a, b) => a - b), [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
  const pages = [];
  for (let from = 0; from < 30; from += 7) pages.push(...(await queue.getJobs('completed', from, from + 6, true)));
  assert.equal(new Set(pages.map(job => job.id)).size, 30);
  assert.deepEqual(await queue.getJobs('completed', 30, 40), []);
});

test('ranges over several states are read together', async t => {
  const queue = stage(t).queue();
  await queue.addBulk([
    ...Array.from({ length: 4 }, (_, n) => ({ name: 'w', data: { n } })),
    ...Array.from({ length: 4 }, (_, n) => ({ name: 'd', data: { n }, opts: { delay: 60_000 * (n + 1) } })),
    ...Array.from({ length: 4 }, (_, n) => ({ name: 'p', data: { n }, opts: { priority: 4 - n } })),
  ]);
  assert.deepEqual(await queue.getRanges(['wait'], 0, 1, true), ['1', '2']);
  assert.deepEqual(await queue.getRanges(['wait'], 0, 1), ['4', '3']);
  assert.deepEqual(await queue.getRanges(['prioritized'], 0, -1, true), ['12', '11', '10', '9']);
  assert.equal((await queue.getJobs(['wait', 'delayed', 'prioritized'], 0, -1)).length, 12);
  assert.equal((await queue.getJobs()).length, 12);
  assert.equal(await queue.getDelayedCount(Date.now() + 150_000), 2);
});

test('metrics count finished jobs by the minute', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async job => { if (job.data.bad) throw new Error('bad'); }, { metrics: { maxDataPoints: 10 } });
  const done = heard(worker, 'completed', 5);
  const failed = heard(worker, 'failed', 2);
  await queue.addBulk([0, 0, 1, 0, 1, 0, 0].map(bad => ({ name: 'x', data: { bad } })));
  await Promise.all([done, failed]);
  const metrics = await queue.getMetrics('completed');
  assert.equal(metrics.meta.count, 5);
  assert.ok(Array.isArray(metrics.data));
  assert.ok(metrics.meta.prevTS > 0);
  assert.equal((await queue.getMetrics('failed')).meta.count, 2);
  // The next minute's first job writes the points of the minutes between.
  const raw = s.raw();
  await raw.hset(s.key(s.name, 'metrics', 'completed'), 'prevTS', Date.now() - 3 * 60_000);
  const more = heard(worker, 'completed', 1);
  await queue.add('x', {});
  await more;
  const later = await queue.getMetrics('completed');
  assert.equal(later.meta.count, 6);
  assert.equal(later.count, later.data.length);
  assert.ok(later.data.length >= 2, `${later.data}`);
});

test('counts are exported for Prometheus', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.addBulk([{ name: 'a', data: {} }, { name: 'b', data: {}, opts: { delay: 60_000 } }]);
  const text = await queue.exportPrometheusMetrics({ env: 'test' });
  assert.match(text, new RegExp(`bullmq_job_count\\{queue="${s.name}", state="waiting", env="test"\\} 1`));
  assert.match(text, new RegExp(`bullmq_job_count\\{queue="${s.name}", state="delayed", env="test"\\} 1`));
});

test('workers and listeners are found by their connection names, until they go', async t => {
  const s = stage(t);
  const queue = s.queue();
  assert.deepEqual(await queue.getWorkers(), []);
  const named = s.worker(async () => {}, { name: 'press-1' });
  const other = s.worker(async () => {});
  const events = await s.events();
  await eventually(async () => (await queue.getWorkersCount()) === 2);
  const found = await queue.getWorkers();
  assert.deepEqual(found.map(w => w.name).sort(), [s.name, s.name]);
  assert.ok(found.some(w => w.rawname.endsWith(':w:press-1')), JSON.stringify(found));
  for (const field of ['id', 'addr', 'laddr', 'fd', 'age', 'idle', 'flags', 'db', 'sub', 'psub', 'multi', 'qbuf', 'events', 'cmd', 'user', 'resp']) {
    assert.ok(field in found[0], `${field} in ${JSON.stringify(found[0])}`);
  }
  assert.equal((await queue.getQueueEvents()).length, 1);
  await s.drop(other);
  await eventually(async () => (await queue.getWorkersCount()) === 1);
  await named.close();
  await events.close();
  await eventually(async () => (await queue.getWorkersCount()) === 0);
  await eventually(async () => (await queue.getQueueEvents()).length === 0);
});

test('a worker that disconnects is gone from the list within 10 ms and back after it reconnects', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async () => {}, { autorun: false });
  await worker.waitUntilReady();
  const client = await worker.getBackend().blockingClient;
  await eventually(async () => (await queue.getWorkersCount()) === 1);
  // BullMQ's own suite gives a server 10 ms. A busy machine may miss that now and then, a slow server always.
  let left;
  for (let round = 0; round < 5; round++) {
    client.disconnect();
    await heard(client, 'end');
    await pause(10);
    left = await queue.getWorkersCount();
    await client.connect();
    await eventually(async () => (await queue.getWorkersCount()) === 1);
    if (left === 0) break;
  }
  assert.equal(left, 0);
});
