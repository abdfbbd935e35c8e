// Job schedulers: every so often, by pattern, with limits, changed and removed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, heard, stage } from './harness.mjs';

test('every: jobs come at the beat, with their data', async t => {
  const s = stage(t);
  const queue = s.queue();
  const starts = [];
  const worker = s.worker(async job => (starts.push(Date.now()), job.data));
  const done = heard(worker, 'completed', 4);
  const first = await queue.upsertJobScheduler('beat', { every: 250 }, { name: 'tick', data: { n: 1 }, opts: { attempts: 2 } });
  assert.ok(first.id.startsWith('repeat:beat:'), first.id);
  const runs = await done;
  assert.ok(runs.every(([job]) => job.name === 'tick' && job.data.n === 1 && job.repeatJobKey === 'beat'));
  // A job's id ends in the time it was due.
  const due = runs.map(([job]) => Number(job.id.split(':').at(-1)));
  for (let n = 1; n < 4; n++) {
    assert.ok(due[n] > due[n - 1] && (due[n] - due[n - 1]) % 250 === 0, `${due}`);
    assert.ok(starts[n] >= due[n], `${starts[n] - due[n]}`);
  }
  const scheduler = await queue.getJobScheduler('beat');
  assert.equal(scheduler.every, 250);
  assert.ok(scheduler.iterationCount >= 4);
  assert.ok(scheduler.next > Date.now() - 10_000);
  assert.deepEqual(scheduler.template, { data: { n: 1 }, opts: { attempts: 2 } });
  assert.equal(await queue.removeJobScheduler('beat'), true);
  assert.equal(await queue.removeJobScheduler('beat'), false);
  await eventually(async () => assert.deepEqual(await queue.getJobCounts('delayed', 'wait', 'active'), { delayed: 0, wait: 0, active: 0 }));
});

test('pattern: the next run is where the clock says', async t => {
  const s = stage(t);
  const queue = s.queue();
  const job = await queue.upsertJobScheduler('nightly', { pattern: '0 0 3 * * *', tz: 'Europe/Berlin' }, { name: 'close', data: {} });
  const scheduler = await queue.getJobScheduler('nightly');
  const at = new Intl.DateTimeFormat('de-DE', { timeZone: 'Europe/Berlin', hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(scheduler.next);
  assert.equal(at, '03:00:00');
  assert.equal(scheduler.pattern, '0 0 3 * * *');
  assert.equal(scheduler.tz, 'Europe/Berlin');
  assert.equal(await queue.getDelayedCount(), 1);
  assert.equal(await job.getState(), 'delayed');
});

test('pattern by the second runs by the second', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async job => Date.now() - Number(job.id.split(':').at(-1)));
  const done = heard(worker, 'completed', 2);
  await queue.upsertJobScheduler('seconds', { pattern: '* * * * * *' });
  for (const [job, late] of await done) {
    assert.equal(Number(job.id.split(':').at(-1)) % 1000, 0);
    assert.ok(late >= 0, `${late} ms`);
  }
});

test('upsert changes the one there is and leaves one job waiting', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.upsertJobScheduler('one', { every: 60_000 }, { name: 'a', data: { v: 1 } });
  await queue.upsertJobScheduler('one', { every: 120_000 }, { name: 'b', data: { v: 2 } });
  await queue.upsertJobScheduler('one', { pattern: '0 0 1 1 *' }, { name: 'c', data: { v: 3 } });
  assert.equal(await queue.getJobSchedulersCount(), 1);
  const scheduler = await queue.getJobScheduler('one');
  assert.equal(scheduler.name, 'c');
  assert.equal(scheduler.every, undefined);
  const waiting = await queue.getJobs(['delayed', 'wait']);
  assert.deepEqual(waiting.map(job => [job.name, job.data.v]), [['c', 3]]);
});

test('schedulers are listed in the order of their next run, in pages', async t => {
  const queue = stage(t).queue();
  for (const [id, hours] of [['c', 3], ['a', 1], ['b', 2]]) {
    await queue.upsertJobScheduler(id, { every: hours * 3_600_000, startDate: Date.now() + hours * 3_600_000 });
  }
  assert.deepEqual((await queue.getJobSchedulers(0, -1, true)).map(one => one.key), ['a', 'b', 'c']);
  assert.deepEqual((await queue.getJobSchedulers()).map(one => one.key), ['c', 'b', 'a']);
  assert.deepEqual((await queue.getJobSchedulers(1, 1, true)).map(one => one.key), ['b']);
  assert.equal(await queue.getJobScheduler('nobody'), undefined);
});

test('a limit ends the series', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async () => {});
  const done = heard(worker, 'completed', 3);
  await queue.upsertJobScheduler('thrice', { every: 100, limit: 3 });
  await done;
  await eventually(async () => assert.deepEqual(await queue.getJobCounts('delayed', 'wait', 'active'), { delayed: 0, wait: 0, active: 0 }));
  assert.equal(await queue.getCompletedCount(), 3);
  assert.equal((await queue.getJobScheduler('thrice')).iterationCount, 3);
});

test('a start is waited for and an end is kept', async t => {
  const s = stage(t);
  const queue = s.queue();
  const start = Date.now() + 1000;
  const worker = s.worker(async () => Date.now());
  const done = heard(worker, 'completed', 2);
  await queue.upsertJobScheduler('window', { every: 400, startDate: start, endDate: start + 4000 });
  const [[, first]] = await done;
  assert.ok(first >= start - 5, `${first - start}`);
  await assert.rejects(queue.upsertJobScheduler('past', { every: 100, endDate: Date.now() - 1000 }), /End date must be greater than current timestamp/);
  await eventually(async () => assert.equal(await queue.getDelayedCount(), 0));
});

test('a scheduled job that fails does not stop the series', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async () => { throw new Error('every time'); });
  const failed = heard(worker, 'failed', 3);
  await queue.upsertJobScheduler('stubborn', { every: 120 });
  await failed;
  assert.ok((await queue.getFailedCount()) >= 3);
  assert.equal(await queue.getJobSchedulersCount(), 1);
});

test('many schedulers share two workers without doubles', async t => {
  const s = stage(t);
  const queue = s.queue();
  await Promise.all(Array.from({ length: 20 }, (_, n) => queue.upsertJobScheduler(`s${n}`, { every: 300 })));
  const seen = [];
  const work = async job => void seen.push(job.id);
  s.worker(work, { concurrency: 5 });
  s.worker(work, { concurrency: 5 });
  await eventually(() => seen.length >= 60, 60_000);
  assert.equal(new Set(seen).size, seen.length, 'no run twice');
  assert.equal(new Set(seen.map(id => id.split(':')[1])).size, 20);
});
