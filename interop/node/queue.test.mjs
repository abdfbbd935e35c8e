// Queues without workers: adding, reading back, moving by hand, removing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Job } from 'bullmq';
import { eventually, heard, stage } from './harness.mjs';

const ids = jobs => jobs.map(job => job.id);

test('an added job comes back as it was put in', async t => {
  const queue = stage(t).queue();
  const data = { text: 'Grüße ✓ \u0000 "quoted" / \\', list: [1, 2.5, -3e20, null, true, []], nested: { empty: {} } };
  const job = await queue.add('order', data, { attempts: 3, backoff: { type: 'fixed', delay: 10 }, priority: 0 });
  assert.equal(job.id, '1');
  const read = await queue.getJob('1');
  assert.deepEqual(read.data, data);
  assert.equal(read.name, 'order');
  assert.deepEqual(read.opts.backoff, { type: 'fixed', delay: 10 });
  assert.equal(read.opts.attempts, 3);
  assert.equal(await read.getState(), 'waiting');
  assert.equal(await queue.getJobState('1'), 'waiting');
  assert.equal(await queue.getJobState('nobody'), 'unknown');
  assert.equal(await queue.getJob('nobody'), undefined);
});

test('ids count up, own ids are kept, and the same id is not added twice', async t => {
  const queue = stage(t).queue();
  assert.equal((await queue.add('a', {})).id, '1');
  assert.equal((await queue.add('b', { v: 1 }, { jobId: 'mine' })).id, 'mine');
  assert.equal((await queue.add('b', { v: 2 }, { jobId: 'mine' })).id, 'mine');
  assert.equal((await queue.add('c', {})).id, '4', 'a refused id uses up a number too');
  assert.deepEqual((await queue.getJob('mine')).data, { v: 1 });
  assert.equal(await queue.getWaitingCount(), 3);
});

test('a bulk of 1,000 is added in order', async t => {
  const queue = stage(t).queue();
  const jobs = await queue.addBulk(Array.from({ length: 1000 }, (_, n) => ({ name: 'bulk', data: { n } })));
  assert.equal(jobs.length, 1000);
  assert.equal(jobs[999].id, '1000');
  const page = await queue.getJobs(['wait'], 0, 9, true);
  assert.deepEqual(page.map(job => job.data.n), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(ids(await queue.getJobs(['wait'], 998, 1005, true)), ['999', '1000']);
  assert.equal(await queue.count(), 1000);
});

test('a job too big for its size limit is refused', async t => {
  const queue = stage(t).queue();
  await assert.rejects(queue.add('big', { text: 'é'.repeat(60) }, { sizeLimit: 100 }), /exceeds the limit 100 bytes/);
  assert.equal(await queue.count(), 0);
});

test('last in first out goes to the other end', async t => {
  const queue = stage(t).queue();
  await queue.add('first', {});
  await queue.add('second', {});
  await queue.add('front', {}, { lifo: true });
  assert.deepEqual((await queue.getJobs('wait', 0, -1, true)).map(job => job.name), ['front', 'first', 'second']);
});

test('jobs in every state are counted and listed', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(null);
  await queue.add('completed', {});
  await queue.add('failed', {});
  await queue.add('active', {});
  for (const end of ['moveToCompleted', 'moveToFailed', undefined]) {
    const job = await worker.getNextJob('token');
    if (end === 'moveToCompleted') await job.moveToCompleted({ ok: true }, 'token', false);
    if (end === 'moveToFailed') await job.moveToFailed(new Error('no luck'), 'token', false);
  }
  await queue.add('waiting', {});
  await queue.add('delayed', {}, { delay: 600_000 });
  await queue.add('prioritized', {}, { priority: 7 });
  await s.flow().add({ name: 'waiting-children', queueName: s.name, children: [{ name: 'child', queueName: 'elsewhere', data: {} }] });

  const states = ['completed', 'failed', 'active', 'waiting', 'delayed', 'prioritized', 'waiting-children'];
  const counts = await queue.getJobCounts(...states);
  assert.deepEqual(counts, Object.fromEntries(states.map(state => [state, 1])));
  for (const state of states) {
    const [job, ...others] = await queue.getJobs([state]);
    assert.equal(job.name, state);
    assert.equal(others.length, 0);
    assert.equal(await job.getState(), state);
  }
  assert.equal((await queue.getJobs(states)).length, 7);
  assert.equal(await queue.getJobCountByTypes(...states), 7);
  assert.equal((await queue.getFailed())[0].failedReason, 'no luck');
  assert.match((await queue.getFailed())[0].stacktrace[0], /no luck/);
  assert.deepEqual((await queue.getCompleted())[0].returnvalue, { ok: true });
  // "To be processed" is waiting, delayed, prioritized and waiting for children.
  assert.equal(await queue.count(), 4);
});

test('a paused queue gives nothing out and resumes where it was', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.add('before', {});
  await queue.pause();
  assert.equal(await queue.isPaused(), true);
  assert.equal((await queue.getMeta()).paused, true);
  await queue.add('during', {});
  await queue.add('urgent', {}, { priority: 1 });
  const worker = s.worker(null);
  assert.equal(await worker.getNextJob('token', { block: false }), undefined);
  await queue.resume();
  assert.equal(await queue.isPaused(), false);
  assert.equal((await worker.getNextJob('token')).name, 'before');
  assert.equal((await worker.getNextJob('token')).name, 'during');
  assert.equal((await worker.getNextJob('token')).name, 'urgent');
});

test('drain empties what waits and keeps what is delayed, unless told', async t => {
  const queue = stage(t).queue();
  const fill = () =>
    queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {}, opts: { priority: 3 } },
      { name: 'c', data: {}, opts: { delay: 60_000 } },
    ]);
  await fill();
  await queue.drain();
  assert.deepEqual(await queue.getJobCounts('wait', 'prioritized', 'delayed'), { wait: 0, prioritized: 0, delayed: 1 });
  await fill();
  await queue.drain(true);
  assert.equal(await queue.count(), 0);
});

test('obliterate leaves no key behind, and refuses while a job is active', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  await queue.addBulk(Array.from({ length: 300 }, (_, n) => ({ name: 'x', data: { n }, opts: n % 3 ? { delay: 9e5 } : { priority: n % 2 } })));
  await queue.upsertJobScheduler('tick', { every: 60_000 });
  const worker = s.worker(null);
  const active = await worker.getNextJob('token');
  await active.log('a line');
  await assert.rejects(queue.obliterate(), /active jobs/);
  await queue.obliterate({ force: true });
  await eventually(async () => assert.deepEqual(await raw.keys(s.key('*')), []));
  // Obliterating works in steps: many jobs, small steps.
  await queue.addBulk(Array.from({ length: 1500 }, (_, n) => ({ name: 'x', data: { n } })));
  await queue.resume();
  await queue.obliterate({ count: 100 });
  assert.deepEqual(await raw.keys(s.key('*')), []);
});

test('clean removes by age, state and limit', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(null);
  await queue.addBulk(Array.from({ length: 12 }, (_, n) => ({ name: 'x', data: { n } })));
  for (let n = 0; n < 10; n++) {
    const job = await worker.getNextJob('token');
    if (n < 6) await job.moveToCompleted(n, 'token', false);
    else await job.moveToFailed(new Error('x'), 'token', false);
  }
  assert.deepEqual(await queue.clean(60_000, 100, 'completed'), []);
  const removed = await queue.clean(0, 4, 'completed');
  assert.equal(removed.length, 4);
  assert.equal(await queue.getCompletedCount(), 2);
  assert.equal(await queue.getJob(removed[0]), undefined);
  assert.equal((await queue.clean(0, 0, 'failed')).length, 4);
  assert.equal((await queue.clean(0, 0, 'wait')).length, 2);
  assert.equal(await queue.count(), 0);
  await queue.addBulk([
    { name: 'd', data: {}, opts: { delay: 5000, timestamp: Date.now() - 10_000 } },
    { name: 'p', data: {}, opts: { priority: 2, timestamp: Date.now() - 10_000 } },
    { name: 'fresh', data: {}, opts: { priority: 2 } },
  ]);
  assert.equal((await queue.clean(5000, 10, 'delayed')).length, 1);
  assert.equal((await queue.clean(5000, 10, 'prioritized')).length, 1);
  assert.equal((await queue.getPrioritized())[0].name, 'fresh');
});

test('cleaning thousands out of the middle of a list keeps the rest in order', async t => {
  const queue = stage(t).queue();
  const old = Date.now() - 60_000;
  await queue.addBulk(Array.from({ length: 3000 }, (_, n) => ({ name: 'x', data: { n }, opts: n % 2 ? {} : { timestamp: old } })));
  // The limit is how many are looked at.
  assert.equal((await queue.clean(30_000, 1000, 'wait')).length, 500);
  assert.equal(await queue.getWaitingCount(), 2500);
  assert.equal((await queue.clean(30_000, 0, 'wait')).length, 1000);
  const left = (await queue.getJobs('wait', 0, -1, true)).map(job => job.data.n);
  assert.deepEqual(left, Array.from({ length: 1500 }, (_, n) => n * 2 + 1));
});

test('failed jobs are retried together, a few at a time if wanted', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(null);
  await queue.addBulk(Array.from({ length: 20 }, (_, n) => ({ name: 'x', data: { n } })));
  for (let n = 0; n < 20; n++) await (await worker.getNextJob('token')).moveToFailed(new Error(`${n}`), 'token', false);
  assert.equal(await queue.getFailedCount(), 20);
  await queue.retryJobs({ count: 3 });
  assert.equal(await queue.getFailedCount(), 0);
  assert.equal(await queue.getWaitingCount(), 20);
  const job = await queue.getJob('5');
  assert.equal(job.failedReason, undefined);
  const done = await worker.getNextJob('token');
  await done.moveToCompleted(1, 'token', false);
  await queue.retryJobs({ state: 'completed' });
  assert.equal(await queue.getWaitingCount(), 20);
});

test('one job is retried by hand, and only from where it is', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(null);
  await queue.add('x', {});
  const job = await worker.getNextJob('token');
  await job.moveToFailed(new Error('x'), 'token', false);
  await assert.rejects(job.retry('completed'), /not in the completed state/);
  await job.retry();
  assert.equal(await job.getState(), 'waiting');
  await assert.rejects(job.retry(), /not in the failed state/);
  const again = await worker.getNextJob('token');
  assert.equal(again.attemptsMade, 1);
  await again.moveToFailed(new Error('y'), 'token', false);
  await again.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
  assert.equal((await queue.getJob(again.id)).attemptsMade, 0);
});

test('delayed jobs are promoted, one or all', async t => {
  const queue = stage(t).queue();
  await queue.addBulk(Array.from({ length: 15 }, (_, n) => ({ name: 'd', data: { n }, opts: { delay: 60_000 + n } })));
  const last = await queue.getJob('15');
  await last.promote();
  assert.equal(await last.getState(), 'waiting');
  await assert.rejects(last.promote(), /not in the delayed state/);
  assert.equal(last.delay, 0);
  await queue.promoteJobs({ count: 4 });
  assert.equal(await queue.getDelayedCount(), 0);
  assert.equal((await queue.getJobs('wait', 0, 0, true))[0].id, '15');
  assert.equal(await queue.getWaitingCount(), 15);
});

test('a delay can be changed while it runs', async t => {
  const queue = stage(t).queue();
  const far = await queue.add('far', {}, { delay: 600_000 });
  await queue.add('near', {}, { delay: 300_000 });
  assert.deepEqual((await queue.getDelayed()).map(job => job.name), ['near', 'far']);
  await far.changeDelay(1000);
  assert.equal(far.delay, 1000);
  assert.deepEqual((await queue.getDelayed()).map(job => job.name), ['far', 'near']);
  const waiting = await queue.add('waiting', {});
  await assert.rejects(waiting.changeDelay(5), /not in the delayed state/);
});

test('jobs of equal priority keep their order, and a priority can be changed', async t => {
  const s = stage(t);
  const queue = s.queue();
  for (const [name, priority] of [['low', 10], ['a', 2], ['b', 2], ['c', 2], ['top', 1], ['plain', 0], ['least', 2_097_151]]) {
    await queue.add(name, {}, { priority });
  }
  assert.deepEqual((await queue.getPrioritized()).map(job => job.name), ['top', 'a', 'b', 'c', 'low', 'least']);
  assert.deepEqual(await queue.getCountsPerPriority([0, 1, 2, 10, 11]), { 0: 1, 1: 1, 2: 3, 10: 1, 11: 0 });
  const [low] = (await queue.getPrioritized()).filter(job => job.name === 'low');
  await low.changePriority({ priority: 1 });
  const [a] = (await queue.getPrioritized()).filter(job => job.name === 'a');
  await a.changePriority({ priority: 0 });
  const [c] = (await queue.getPrioritized()).filter(job => job.name === 'c');
  await c.changePriority({ priority: 1, lifo: true });
  await assert.rejects(queue.add('x', {}, { priority: 2_097_152 }), /Priority should be between 0 and 2097151/);
  const worker = s.worker(null);
  const order = [];
  for (let n = 0; n < 7; n++) order.push((await worker.getNextJob('token')).name);
  assert.deepEqual(order, ['plain', 'a', 'c', 'top', 'low', 'b', 'least']);
});

test('data, progress and logs are updated in place', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const job = await queue.add('x', { v: 1 });
  await job.updateData({ v: 2, more: 'é' });
  assert.deepEqual((await queue.getJob(job.id)).data, { v: 2, more: 'é' });
  const progressed = heard(events, 'progress', 2);
  await job.updateProgress(42);
  await job.updateProgress({ done: 1, of: 2 });
  assert.deepEqual((await progressed).map(([{ data }]) => data), [42, { done: 1, of: 2 }]);
  assert.deepEqual((await queue.getJob(job.id)).progress, { done: 1, of: 2 });
  await queue.updateJobProgress(job.id, 'half');
  assert.equal((await queue.getJob(job.id)).progress, 'half');
  await assert.rejects(queue.updateJobProgress('nobody', 1), /Missing key for job/);

  for (let n = 1; n <= 12; n++) assert.equal(await job.log(`line ${n}`), n);
  assert.deepEqual(await queue.getJobLogs(job.id, 0, 1), { logs: ['line 1', 'line 2'], count: 12 });
  assert.deepEqual(await queue.getJobLogs(job.id, 0, 1, false), { logs: ['line 12', 'line 11'], count: 12 });
  await queue.addJobLog(job.id, 'kept', 3);
  assert.deepEqual((await queue.getJobLogs(job.id)).logs, ['line 11', 'line 12', 'kept']);
  await job.clearLogs(1);
  assert.deepEqual((await queue.getJobLogs(job.id)).logs, ['kept']);
  await job.clearLogs();
  assert.deepEqual(await queue.getJobLogs(job.id), { logs: [], count: 0 });
  const kept = await queue.add('kept', {}, { keepLogs: 2 });
  for (let n = 0; n < 5; n++) await kept.log(`${n}`);
  assert.deepEqual((await queue.getJobLogs(kept.id)).logs, ['3', '4']);
});

test('removing a job takes its logs and its place', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const job = await queue.add('x', {});
  await queue.add('y', {}, { delay: 60_000 });
  await job.log('line');
  assert.equal(await queue.remove(job.id), 1);
  assert.equal(await queue.getJob(job.id), undefined);
  assert.deepEqual(await raw.keys(s.key(s.name, `${job.id}*`)), []);
  assert.equal(await queue.getWaitingCount(), 0);
  const worker = s.worker(null);
  await queue.add('held', {});
  const held = await worker.getNextJob('token');
  await assert.rejects(held.remove(), /could not be removed because it is locked/);
});

test('orphaned job hashes are found by scanning and removed', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const pipe = raw.pipeline();
  for (let n = 0; n < 150; n++) pipe.hset(s.key(s.name, `orphan-${n}`), 'name', 'x', 'data', '{}');
  pipe.rpush(s.key(s.name, 'orphan-3', 'logs'), 'line');
  await pipe.exec();
  await queue.addBulk([{ name: 'real', data: {} }, { name: 'real', data: {}, opts: { delay: 60_000 } }, { name: 'real', data: {}, opts: { priority: 1 } }]);
  assert.equal(await queue.removeOrphanedJobs(10), 150);
  assert.equal(await queue.count(), 3);
  assert.deepEqual(await raw.keys(s.key(s.name, 'orphan*')), []);
  assert.ok(await queue.getJob('1'));
});

test('scores above 2^52 keep their order and their digits', async t => {
  // A delayed job's score is its time times 4096 plus a counter: 53 bits, printed and compared without loss.
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const at = Date.now();
  for (let n = 0; n < 5; n++) await queue.add(`${n}`, {}, { delay: 86_400_000, timestamp: at });
  const entries = await raw.zrange(s.key(s.name, 'delayed'), 0, -1, 'WITHSCORES');
  const scores = entries.filter((_, n) => n % 2).map(String);
  const base = BigInt(at + 86_400_000) * 4096n;
  assert.deepEqual(scores, [0n, 1n, 2n, 3n, 4n].map(n => String(base + n)));
  assert.deepEqual((await queue.getDelayed()).map(job => job.name), ['0', '1', '2', '3', '4']);
});

test('jobs are read back the same by Job.fromId and by a second queue object', async t => {
  const s = stage(t);
  const [one, two] = [s.queue(), s.queue()];
  const { id } = await one.add('x', { a: [1] });
  assert.deepEqual((await Job.fromId(two, id)).asJSON(), (await one.getJob(id)).asJSON());
  assert.match(await two.getVersion(), /^bullmq:6\./);
});
