// Workers: running jobs, failing, trying again, holding locks, stopping.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DelayedError, UnrecoverableError, WaitingChildrenError, WaitingError } from 'bullmq';
import { eventually, heard, pause, signal, stage } from './harness.mjs';

test('a job runs once, in order, and its result is kept', async t => {
  const s = stage(t);
  const queue = s.queue();
  const seen = [];
  const worker = s.worker(async job => (seen.push(job.data.n), { twice: job.data.n * 2 }));
  const done = heard(worker, 'completed', 50);
  await queue.addBulk(Array.from({ length: 50 }, (_, n) => ({ name: 'x', data: { n } })));
  const results = await done;
  assert.deepEqual(seen, Array.from({ length: 50 }, (_, n) => n));
  assert.deepEqual(results[49][1], { twice: 98 });
  const job = await queue.getJob('50');
  assert.deepEqual(job.returnvalue, { twice: 98 });
  assert.ok(job.processedOn >= job.timestamp && job.finishedOn >= job.processedOn);
  assert.equal(job.attemptsMade, 1);
  assert.deepEqual(await queue.getJobCounts('completed', 'active', 'wait'), { completed: 50, active: 0, wait: 0 });
});

test('no more jobs run at once than the concurrency allows', async t => {
  const s = stage(t);
  const queue = s.queue();
  let running = 0, most = 0;
  const worker = s.worker(async () => {
    most = Math.max(most, ++running);
    await pause(150);
    running--;
  }, { concurrency: 7 });
  const done = heard(worker, 'completed', 35);
  await queue.addBulk(Array.from({ length: 35 }, () => ({ name: 'x', data: {} })));
  await done;
  assert.equal(most, 7);
});

test('a finished job brings the next one: the server is hardly asked', async t => {
  // Markers given twice, or wake-ups without a job, show as extra calls. On an idle machine it is 14 and 3.
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async () => pause(150), { concurrency: 13 });
  await worker.waitUntilReady();
  const client = await worker.getBackend().blockingClient;
  let asked = 0, waited = 0;
  const [moveToActive, bzpopmin] = [worker.moveToActive.bind(worker), client.bzpopmin.bind(client)];
  worker.moveToActive = (...args) => (asked++, moveToActive(...args));
  client.bzpopmin = (...args) => (waited++, bzpopmin(...args));
  const done = heard(worker, 'completed', 57);
  await queue.addBulk(Array.from({ length: 57 }, () => ({ name: 'x', data: {} })));
  await done;
  assert.ok(asked >= 13 && asked <= 40, `${asked}`);
  assert.ok(waited <= 12, `${waited}`);
});

test('a failing job is tried again as often as it may, and its reasons are kept', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const worker = s.worker(async job => { throw new Error(`try ${job.attemptsMade + 1}`); });
  const exhausted = heard(events, 'retries-exhausted');
  await queue.add('x', {}, { attempts: 3 });
  const [[told]] = await exhausted;
  assert.deepEqual(told, { jobId: '1', attemptsMade: '3' });
  await eventually(async () => assert.equal(await queue.getFailedCount(), 1));
  const job = await queue.getJob('1');
  assert.equal(job.failedReason, 'try 3');
  assert.equal(job.attemptsMade, 3);
  assert.equal(job.stacktrace.length, 3);
  assert.match(job.stacktrace[0], /try 1/);
  await worker.close();
});

for (const [type, delays] of [['fixed', [100, 100]], ['exponential', [100, 200]]]) {
  test(`${type} back-off waits as long as it says`, async t => {
    const s = stage(t);
    const queue = s.queue();
    const starts = [];
    const worker = s.worker(async () => {
      starts.push(Date.now());
      if (starts.length < 3) throw new Error('again');
    });
    const done = heard(worker, 'completed');
    await queue.add('x', {}, { attempts: 5, backoff: { type, delay: 100 } });
    await done;
    for (const [n, least] of delays.entries()) {
      const waited = starts[n + 1] - starts[n];
      assert.ok(waited >= least - 2 && waited < least + 10_000, `${waited} ms instead of ${least}`);
    }
  });
}

test('a back-off of one\'s own decides, also to give up', async t => {
  const s = stage(t);
  const queue = s.queue();
  const asked = [];
  const worker = s.worker(async () => { throw new Error('no'); }, {
    settings: { backoffStrategy: (attempts, type, error) => (asked.push([attempts, type, error.message]), attempts < 2 ? 20 : -1) },
  });
  const failed = heard(worker, 'failed', 2);
  await queue.add('x', {}, { attempts: 9, backoff: { type: 'mine' } });
  await failed;
  assert.deepEqual(asked, [[1, 'mine', 'no'], [2, 'mine', 'no']]);
  await eventually(async () => assert.equal(await queue.getFailedCount(), 1));
});

test('an unrecoverable error ends the attempts', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async () => { throw new UnrecoverableError('for good'); });
  const failed = heard(worker, 'failed');
  await queue.add('x', {}, { attempts: 5, backoff: 10 });
  const [[job]] = await failed;
  assert.equal(job.attemptsMade, 1);
  assert.equal(await job.getState(), 'failed');
  assert.equal((await queue.getJob(job.id)).failedReason, 'for good');
});

test('a job puts itself off and comes back', async t => {
  const s = stage(t);
  const queue = s.queue();
  const starts = [];
  const worker = s.worker(async (job, token) => {
    starts.push(Date.now());
    if (starts.length === 1) {
      await job.updateData({ step: 2 });
      await job.moveToDelayed(Date.now() + 150, token);
      throw new DelayedError();
    }
    return job.data.step;
  });
  const done = heard(worker, 'completed');
  await queue.add('x', { step: 1 }, { attempts: 1 });
  const [[job, result]] = await done;
  assert.equal(result, 2);
  assert.equal(job.attemptsMade, 1);
  assert.equal(job.attemptsStarted, 2);
  assert.ok(starts[1] - starts[0] >= 148, `${starts[1] - starts[0]}`);
});

test('a job goes back to wait by its own wish', async t => {
  const s = stage(t);
  const queue = s.queue();
  let runs = 0;
  const worker = s.worker(async (job, token) => {
    if (++runs === 1) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
  });
  const done = heard(worker, 'completed');
  await queue.add('x', {});
  await done;
  assert.equal(runs, 2);
});

test('a job waits for the children it makes while it runs', async t => {
  const s = stage(t);
  const [queue, children] = [s.queue(), s.queue({}, 'children')];
  let runs = 0;
  const worker = s.worker(async (job, token) => {
    runs++;
    if (job.data.step === 1) {
      for (const n of [1, 2, 3]) {
        await children.add('child', { n }, { parent: { id: job.id, queue: job.queueQualifiedName } });
      }
      await job.updateData({ step: 2 });
    }
    if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError();
    const values = await job.getChildrenValues();
    return Object.values(values).sort();
  });
  const done = heard(worker, 'completed');
  await queue.add('x', { step: 1 });
  await eventually(async () => assert.equal(await queue.getWaitingChildrenCount(), 1));
  s.worker(async job => job.data.n * 10, {}, 'children');
  const [[, result]] = await done;
  assert.deepEqual(result, [10, 20, 30]);
  assert.equal(runs, 2);
});

test('delayed jobs start when they are due, in order, not before', async t => {
  const s = stage(t);
  const queue = s.queue();
  const started = [];
  const worker = s.worker(async job => started.push([job.data.n, Date.now() - job.timestamp - job.opts.delay]), { concurrency: 1 });
  const done = heard(worker, 'completed', 8);
  await worker.waitUntilReady();
  const delays = [400, 100, 300, 200, 101, 102, 250, 50];
  await queue.addBulk(delays.map(delay => ({ name: 'x', data: { n: delay }, opts: { delay } })));
  await done;
  assert.deepEqual(started.map(([n]) => n), [...delays].sort((a, b) => a - b));
  for (const [n, late] of started) assert.ok(late >= -1 && late < 10_000, `${n} was ${late} ms late`);
});

test('locks are renewed while jobs run, for many at once', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const tokens = new Map();
  const worker = s.worker(async job => {
    tokens.set(job.id, await raw.get(s.key(s.name, job.id, 'lock')));
    await pause(8000);
    assert.equal(await raw.get(s.key(s.name, job.id, 'lock')), tokens.get(job.id));
    return (await raw.pttl(s.key(s.name, job.id, 'lock'))) > 0;
  }, { lockDuration: 5000, concurrency: 57 });
  const renewed = heard(worker, 'locksRenewed');
  const done = heard(worker, 'completed', 57);
  await queue.addBulk(Array.from({ length: 57 }, () => ({ name: 'x', data: {} })));
  const results = await done;
  assert.ok(results.every(([, held]) => held === true));
  assert.ok((await renewed)[0][0].count > 0);
  assert.deepEqual(await raw.keys(s.key(s.name, '*', 'lock')), []);
});

test('a lock that was lost is noticed when the job ends', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const worker = s.worker(async job => {
    if (job.name === 'lost') await raw.del(s.key(s.name, job.id, 'lock'));
    else await raw.set(s.key(s.name, job.id, 'lock'), 'a thief');
  }, { skipStalledCheck: true });
  const errors = [];
  worker.on('error', error => errors.push(error.message));
  await queue.addBulk([{ name: 'lost', data: {} }, { name: 'stolen', data: {} }]);
  await eventually(() => errors.includes('Missing lock for job 1. moveToFinished'));
  await eventually(() => errors.includes('Lock mismatch for job 2. Cmd moveToFinished from active'));
  assert.equal(await queue.getActiveCount(), 2);
});

test('a lock is extended by hand, for its holder only', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const worker = s.worker(null, { lockDuration: 1000, skipLockRenewal: true });
  await queue.add('x', {});
  const job = await worker.getNextJob('token');
  assert.equal(await job.extendLock('token', 60_000), 1);
  assert.ok((await raw.pttl(s.key(s.name, '1', 'lock'))) > 50_000);
  await assert.rejects(job.extendLock('other', 60_000).then(n => assert.equal(n, 1)));
  await job.moveToCompleted('done', 'token', false);
  assert.equal(await raw.exists(s.key(s.name, '1', 'lock')), 0);
});

test('an expired lock frees the job to the millisecond', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(null, { lockDuration: 1000, skipLockRenewal: true });
  await queue.add('x', {});
  const job = await worker.getNextJob('token');
  await assert.rejects(job.remove(), /locked/);
  // The pause is the point: the lock ends after a second.
  await pause(1005);
  await job.remove();
  assert.equal(await queue.getJob(job.id), undefined);
});

test('finished jobs are kept by count and by age', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const worker = s.worker(async job => { if (job.data.bad) throw new Error('bad'); });
  const run = async (jobs, event) => {
    const done = heard(worker, event, jobs.length);
    await queue.addBulk(jobs);
    await done;
  };
  await run(Array.from({ length: 12 }, () => ({ name: 'x', data: {}, opts: { removeOnComplete: 4 } })), 'completed');
  await eventually(async () => assert.equal(await queue.getCompletedCount(), 4));
  await run(Array.from({ length: 5 }, () => ({ name: 'x', data: { bad: true }, opts: { removeOnFail: { count: 2 } } })), 'failed');
  await eventually(async () => assert.equal(await queue.getFailedCount(), 2));
  await run([{ name: 'x', data: {}, opts: { removeOnComplete: true } }], 'completed');
  assert.equal((await queue.getCompleted()).some(job => job.id === '18'), false);
  // By age: make the old ones older than they are, and let one more job finish.
  const completed = s.key(s.name, 'completed');
  for (const id of await raw.zrange(completed, 0, -1)) await raw.zadd(completed, Date.now() - 5000, id);
  await run([{ name: 'x', data: {}, opts: { removeOnComplete: { age: 2 } } }], 'completed');
  await eventually(async () => assert.deepEqual((await queue.getCompleted()).map(job => job.id), ['19']));
  assert.equal(await raw.exists(s.key(s.name, '12')), 0);
});

test('removal by age with a limit leaves no orphan', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const worker = s.worker(async () => {}, { removeOnComplete: { age: 1, limit: 2 } });
  const first = heard(worker, 'completed', 10);
  await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'x', data: {} })));
  await first;
  const completed = s.key(s.name, 'completed');
  for (const id of await raw.zrange(completed, 0, -1)) await raw.zadd(completed, Date.now() - 5000 + Number(id), id);
  const next = heard(worker, 'completed');
  await queue.add('x', {});
  await next;
  await eventually(async () => assert.equal(await raw.zcard(completed), 9));
  for (let id = 1; id <= 11; id++) {
    assert.equal((await raw.zscore(completed, `${id}`)) !== null, (await raw.exists(s.key(s.name, `${id}`))) === 1, `job ${id}`);
  }
});

test('closing waits for the running job, takes no other, and can be forced', async t => {
  const s = stage(t);
  const queue = s.queue();
  const started = signal(), go = signal();
  const worker = s.worker(async () => {
    started.raise();
    await go.raised;
    return 'finished';
  });
  await queue.addBulk([{ name: 'first', data: {} }, { name: 'second', data: {} }]);
  await started.raised;
  const completed = heard(worker, 'completed');
  const closed = worker.close();
  go.raise();
  await closed;
  assert.equal((await completed)[0][1], 'finished');
  assert.deepEqual(await queue.getJobCounts('completed', 'wait', 'active'), { completed: 1, wait: 1, active: 0 });

  const stuck = signal();
  const second = s.worker(async () => (stuck.raise(), pause(60_000, undefined, { ref: false })));
  await stuck.raised;
  const began = Date.now();
  await s.drop(second);
  assert.ok(Date.now() - began < 15_000, 'a forced close does not wait');
  assert.equal(await queue.getActiveCount(), 1);
});

test('an idle worker closes at once although it waits for a minute', async t => {
  const s = stage(t);
  const worker = s.worker(async () => {}, { drainDelay: 60 });
  await worker.waitUntilReady();
  await pause(100);
  const began = Date.now();
  await worker.close();
  assert.ok(Date.now() - began < 15_000, `${Date.now() - began} ms`);
});

test('a paused worker takes nothing until it resumes', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async job => job.name);
  await worker.waitUntilReady();
  await worker.pause();
  assert.equal(worker.isPaused(), true);
  await queue.add('x', {});
  await pause(100);
  assert.equal(await queue.getWaitingCount(), 1);
  const done = heard(worker, 'completed');
  worker.resume();
  assert.equal((await done)[0][1], 'x');
});

test('a running job is cancelled through its signal', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker((job, token, abort) => new Promise((_, reject) => abort.addEventListener('abort', () => reject(new UnrecoverableError(`stopped: ${abort.reason}`)))));
  const active = heard(worker, 'active');
  await queue.add('x', {}, { attempts: 3 });
  const [[job]] = await active;
  const failed = heard(worker, 'failed');
  await eventually(() => worker.cancelJob(job.id, 'enough'));
  assert.match((await failed)[0][1].message, /stopped/);
  assert.equal(await job.getState(), 'failed');
});

test('values of every JSON shape survive as results, and so does 1 MB', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const worker = s.worker(async job => job.data.value);
  const big = 'x'.repeat(1 << 20);
  for (const value of [null, 0, -1.5, 1e21, '', 'text', true, [], {}, [[], { a: null }], '/ \\ "', big]) {
    const job = await queue.add('x', { value });
    assert.deepEqual(await job.waitUntilFinished(events, 60_000), value);
    assert.deepEqual((await queue.getJob(job.id)).returnvalue, value);
  }
  await worker.close();
});
