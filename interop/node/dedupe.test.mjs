// Deduplication: simple, throttled, debounced, extended, kept.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, heard, pause, stage } from './harness.mjs';

test('simple: a second job is dropped while the first is there', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const told = heard(events, 'deduplicated', 2);
  const deduplication = { id: 'order-1' };
  const first = await queue.add('a', { v: 1 }, { deduplication });
  for (const v of [2, 3]) assert.equal((await queue.add('a', { v }, { deduplication })).id, first.id);
  for (const [event] of await told) {
    assert.equal(event.jobId, first.id);
    assert.equal(event.deduplicationId, 'order-1');
    assert.notEqual(event.deduplicatedJobId, first.id);
  }
  assert.equal(await queue.getDeduplicationJobId('order-1'), first.id);
  assert.equal(await queue.getWaitingCount(), 1);
  const worker = s.worker(async job => job.data.v);
  await heard(worker, 'completed');
  await eventually(async () => assert.equal(await queue.getDeduplicationJobId('order-1'), null));
  const next = await queue.add('a', { v: 4 }, { deduplication });
  assert.notEqual(next.id, first.id);
});

test('throttle: within the time only the first', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async job => job.data.v);
  const done = heard(worker, 'completed');
  const deduplication = { id: 'x', ttl: 2000 };
  const first = await queue.add('a', { v: 1 }, { deduplication });
  await done;
  assert.equal((await queue.add('a', { v: 2 }, { deduplication })).id, first.id, 'finished, but the time is not over');
  const raw = s.raw();
  const left = await raw.pttl(s.key(s.name, 'de', 'x'));
  assert.ok(left > 0 && left <= 2000, `${left}`);
  await eventually(async () => (await raw.exists(s.key(s.name, 'de', 'x'))) === 0);
  assert.notEqual((await queue.add('a', { v: 3 }, { deduplication })).id, first.id);
});

test('debounce: the last one wins, and each puts the start off', async t => {
  const s = stage(t);
  const queue = s.queue();
  const add = v => queue.add('a', { v }, { deduplication: { id: 'x', ttl: 2500, extend: true, replace: true }, delay: 2500 });
  let last;
  for (let v = 1; v <= 4; v++) {
    last = await add(v);
    await pause(60);
  }
  assert.equal(await queue.getDelayedCount(), 1);
  assert.equal(await queue.getDeduplicationJobId('x'), last.id);
  const worker = s.worker(async job => job.data.v);
  const [[job, value]] = await heard(worker, 'completed');
  assert.equal(value, 4);
  assert.equal(job.id, last.id);
  assert.equal(await queue.getCompletedCount(), 1);
});

test('extend: each attempt starts the time anew', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const key = s.key(s.name, 'de', 'x');
  await queue.add('a', {}, { deduplication: { id: 'x', ttl: 30_000, extend: true } });
  const shorter = await eventually(async () => (left => left < 29_500 && left)(await raw.pttl(key)));
  await queue.add('a', {}, { deduplication: { id: 'x', ttl: 60_000, extend: true } });
  const longer = await raw.pttl(key);
  assert.ok(longer > shorter, `${longer} after ${shorter}`);
  await queue.add('a', {}, { deduplication: { id: 'x', ttl: 90_000 } });
  assert.ok((await raw.pttl(key)) <= longer, 'without extend it runs on');
});

test('replace without a time keeps the newest delayed job', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const removed = heard(events, 'removed');
  const first = await queue.add('a', { v: 1 }, { deduplication: { id: 'x', replace: true }, delay: 60_000 });
  const second = await queue.add('a', { v: 2 }, { deduplication: { id: 'x', replace: true }, delay: 60_000 });
  assert.deepEqual((await removed)[0][0], { jobId: first.id, prev: 'delayed' });
  assert.deepEqual((await queue.getDelayed()).map(job => job.id), [second.id]);
  assert.equal(await queue.getJob(first.id), undefined);
});

test('keepLastIfActive: what came while a job ran runs after it, once, the last', async t => {
  const s = stage(t);
  const queue = s.queue();
  const seen = [];
  let open;
  const gate = new Promise(resolve => (open = resolve));
  const worker = s.worker(async job => {
    seen.push(job.data.v);
    if (seen.length === 1) await gate;
  });
  const deduplication = { id: 'x', keepLastIfActive: true };
  const done = heard(worker, 'completed', 2);
  await queue.add('a', { v: 1 }, { deduplication });
  await eventually(() => seen.length === 1);
  for (const v of [2, 3, 4]) await queue.add('a', { v }, { deduplication });
  open();
  await done;
  assert.deepEqual(seen, [1, 4]);
  await eventually(async () => assert.equal(await queue.getDeduplicationJobId('x'), null));
});

test('the key is removed by hand, by the queue or by its job', async t => {
  const queue = stage(t).queue();
  const deduplication = { id: 'x', ttl: 60_000 };
  const first = await queue.add('a', {}, { deduplication });
  assert.equal(await queue.removeDeduplicationKey('x'), 1);
  assert.equal(await queue.removeDeduplicationKey('x'), 0);
  const second = await queue.add('a', {}, { deduplication });
  assert.notEqual(second.id, first.id);
  assert.equal(await first.removeDeduplicationKey(), false, 'it is not his any more');
  assert.equal(await second.removeDeduplicationKey(), true);
});
