// Rates and global concurrency: what all workers of a queue share.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'bullmq';
import { eventually, heard, pause, stage } from './harness.mjs';

/** When the server gave out each job, by its own clock: the ids of the events. This machine may be slow to notice. */
async function given(s) {
  const entries = await s.raw().xrange(s.key(s.name, 'events'), '-', '+');
  return entries.filter(([, fields]) => fields[1] === 'active').map(([id]) => Number(id.split('-')[0]));
}

test('a worker\'s limiter holds the rate', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async () => {}, { limiter: { max: 4, duration: 400 }, concurrency: 10 });
  const done = heard(worker, 'completed', 12, 60_000);
  await queue.addBulk(Array.from({ length: 12 }, () => ({ name: 'x', data: {} })));
  await done;
  const starts = await given(s);
  assert.equal(starts.length, 12);
  // Three windows of four: the fifth may start only when the first window has passed.
  assert.ok(starts[4] - starts[0] >= 398, `${starts[4] - starts[0]}`);
  assert.ok(starts[8] - starts[4] >= 398, `${starts[8] - starts[4]}`);
  assert.ok(starts[11] - starts[0] < 20_000, `${starts[11] - starts[0]}`);
});

test('a queue is held back by hand, and let go', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.rateLimit(60_000);
  const left = await queue.getRateLimitTtl();
  assert.ok(left > 50_000 && left <= 60_000, `${left}`);
  const worker = s.worker(async () => 'ran', { limiter: { max: 1, duration: 10 } });
  const done = heard(worker, 'completed');
  await queue.add('x', {});
  await pause(150);
  assert.equal(await queue.getWaitingCount(), 1);
  assert.equal(await queue.removeRateLimitKey(), 1);
  // Eventually: the job may already be out, and set the limit of 10 ms.
  await eventually(async () => (await queue.getRateLimitTtl()) <= 0);
  // The worker sleeps for as long as the limit said; a fresh one sees that it is gone.
  const second = s.worker(async () => 'ran', { limiter: { max: 1, duration: 10 } });
  assert.equal(await Promise.race([done, heard(second, 'completed')]).then(([[, result]]) => result), 'ran');
});

test('a job that meets a foreign limit goes back to wait without losing an attempt', async t => {
  const s = stage(t);
  const queue = s.queue();
  let runs = 0;
  const worker = s.worker(async () => {
    if (++runs === 1) {
      await worker.rateLimit(200);
      throw Worker.RateLimitError();
    }
    return runs;
  }, { limiter: { max: 5, duration: 100 } });
  const done = heard(worker, 'completed');
  const began = Date.now();
  await queue.add('x', {}, { attempts: 1 });
  const [[job, result]] = await done;
  assert.equal(result, 2);
  assert.equal(job.attemptsMade, 1);
  assert.ok(Date.now() - began >= 190, `${Date.now() - began}`);
});

test('the rate of a whole queue is set and removed', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.setGlobalRateLimit(2, 300);
  assert.deepEqual(await queue.getGlobalRateLimit(), { max: 2, duration: 300 });
  const workers = [1, 2].map(() => s.worker(async () => {}, { concurrency: 5 }));
  await queue.addBulk(Array.from({ length: 6 }, () => ({ name: 'x', data: {} })));
  await eventually(async () => assert.equal(await queue.getCompletedCount(), 6), 60_000);
  const starts = await given(s);
  assert.ok(starts[2] - starts[0] >= 298, `${starts}`);
  assert.ok(starts[4] - starts[2] >= 298, `${starts}`);
  await queue.removeGlobalRateLimit();
  assert.equal(await queue.getGlobalRateLimit(), null);
  await Promise.all(workers.map(worker => worker.close()));
});

test('the concurrency of a whole queue holds over several workers', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.setGlobalConcurrency(2);
  assert.equal(await queue.getGlobalConcurrency(), 2);
  let running = 0, most = 0;
  const work = async () => {
    most = Math.max(most, ++running);
    await pause(120);
    running--;
  };
  const workers = [1, 2, 3].map(() => s.worker(work, { concurrency: 4 }));
  await queue.addBulk(Array.from({ length: 16 }, () => ({ name: 'x', data: {} })));
  await eventually(async () => assert.equal(await queue.getCompletedCount(), 16), 60_000);
  assert.equal(most, 2);
  await queue.removeGlobalConcurrency();
  assert.equal(await queue.getGlobalConcurrency(), null);
  assert.equal(await queue.isMaxed(), false);
  await Promise.all(workers.map(worker => worker.close()));
});

test('a queue at its concurrency is full until a job ends', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(null);
  await queue.setGlobalConcurrency(1);
  await queue.addBulk([{ name: 'a', data: {} }, { name: 'b', data: {} }]);
  const first = await worker.getNextJob('token');
  assert.equal(await queue.isMaxed(), true);
  assert.equal(await worker.getNextJob('token', { block: false }), undefined);
  await first.moveToCompleted(1, 'token', false);
  assert.equal((await worker.getNextJob('token')).name, 'b');
});
