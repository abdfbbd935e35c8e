// Workers that die: their jobs are taken up again, and given up when they kill too often.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { test } from 'node:test';
import { eventually, heard, once, pause, stage } from './harness.mjs';

const holder = new URL('./processes/holding-worker.mjs', import.meta.url);

/** Starts a worker process, waits until it holds `count` jobs, and kills it without warning. */
async function killedHolding(t, s, count = 1) {
  const child = fork(holder, [s.prefix, s.name, '300'], { env: process.env });
  t.after(() => child.kill('SIGKILL'));
  const held = (await heard(child, 'message', count)).map(([{ holds }]) => holds);
  const died = once(child, 'exit');
  child.kill('SIGKILL');
  await died;
  return held;
}

test('jobs of a killed worker run again elsewhere', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  await queue.addBulk([1, 2, 3].map(n => ({ name: 'x', data: { n } })));
  const held = await killedHolding(t, s, 3);
  assert.equal(await queue.getActiveCount(), 3);
  const stalled = heard(events, 'stalled', 3);
  const worker = s.worker(async job => job.data.n, { stalledInterval: 200, concurrency: 3 });
  const done = await heard(worker, 'completed', 3);
  assert.deepEqual(done.map(([job]) => job.id).sort(), held.sort());
  assert.deepEqual((await stalled).map(([{ jobId }]) => jobId).sort(), held.sort());
  const job = await queue.getJob('1');
  assert.equal(job.stalledCounter, 1);
  assert.equal(job.attemptsMade, 1);
  assert.deepEqual(await queue.getJobCounts('active', 'wait', 'completed'), { active: 0, wait: 0, completed: 3 });
});

test('a job that stalls too often fails', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.add('killer', {});
  await killedHolding(t, s);
  const worker = s.worker(async () => assert.fail('must not run'), { stalledInterval: 150, maxStalledCount: 0 });
  const [[job, error]] = await heard(worker, 'failed');
  assert.match(error.message, /stalled more than allowable limit/);
  assert.equal(job.id, '1');
  assert.equal(await queue.getFailedCount(), 1);
});

test('a job that starts too often fails', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.add('x', {});
  await killedHolding(t, s);
  const worker = s.worker(async () => 'ran', { stalledInterval: 150, maxStartedAttempts: 1 });
  const [[, error]] = await heard(worker, 'failed');
  assert.match(error.message, /started more than allowable limit/);
});

test('a living worker\'s long job does not stall', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const stalls = [];
  events.on('stalled', e => stalls.push(e));
  for (const n of [1, 2]) s.worker(() => pause(4000, n), { lockDuration: 2500, stalledInterval: 300 });
  const job = await queue.add('x', {});
  assert.ok([1, 2].includes(await job.waitUntilFinished(events, 60_000)));
  assert.deepEqual(stalls, []);
});

test('after a stall the parent of a flow still ends', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const { job } = await s.flow().add({ name: 'parent', queueName: 'parents', children: [{ name: 'child', queueName: s.name, data: {} }] });
  await killedHolding(t, s);
  s.worker(async () => 'child', { stalledInterval: 150 });
  s.worker(async parent => Object.values(await parent.getChildrenValues()), {}, 'parents');
  assert.deepEqual(await job.waitUntilFinished(events, 60_000), ['child']);
  await eventually(async () => assert.equal(await job.getState(), 'completed'));
});
