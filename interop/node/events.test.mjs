// Queue events: what the stream says, resumed and trimmed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnrecoverableError } from 'bullmq';
import { blocked, eventually, heard, stage } from './harness.mjs';

test('the life of a job is told in order', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const told = [];
  for (const event of ['added', 'waiting', 'active', 'progress', 'completed', 'failed', 'delayed', 'drained', 'removed', 'paused', 'resumed', 'cleaned', 'duplicated', 'waiting-children', 'retries-exhausted']) {
    events.on(event, (args, id) => told.push([event, ...(id === undefined ? [] : [args])]));
  }
  const job = await queue.add('x', {}, { jobId: 'a' });
  await queue.add('x', {}, { jobId: 'a' });
  const worker = s.worker(async job => {
    if (job.attemptsMade === 0) throw new Error('once');
    await job.updateProgress(50);
    return { v: 1 };
  });
  await eventually(async () => assert.equal(await job.getState(), 'waiting'));
  await heard(worker, 'failed', 1).then(() => job.retry());
  await heard(worker, 'completed');
  await worker.close();
  await queue.pause();
  await queue.resume();
  await queue.clean(0, 10, 'completed');
  const delayed = await queue.add('later', {}, { delay: 60_000, jobId: 'b' });
  await delayed.remove();
  await eventually(() => told.some(([event]) => event === 'removed'));
  assert.deepEqual(told, [
    ['added', { jobId: 'a', name: 'x' }],
    ['waiting', { jobId: 'a' }],
    ['duplicated', { jobId: 'a' }],
    ['active', { jobId: 'a', prev: 'waiting' }],
    ['failed', { jobId: 'a', failedReason: 'once', prev: 'active' }],
    ['retries-exhausted', { jobId: 'a', attemptsMade: '1' }],
    ['drained'],
    ['waiting', { jobId: 'a', prev: 'failed' }],
    ['active', { jobId: 'a', prev: 'waiting' }],
    ['progress', { jobId: 'a', data: 50 }],
    ['completed', { jobId: 'a', returnvalue: { v: 1 }, prev: 'active' }],
    ['drained'],
    ['paused', {}],
    ['resumed', {}],
    ['cleaned', { count: '1' }],
    ['added', { jobId: 'b', name: 'later' }],
    ['delayed', { jobId: 'b', delay: told.find(([event]) => event === 'delayed')[1].delay }],
    ['removed', { jobId: 'b', prev: 'delayed' }],
  ]);
});

test('a listener resumes after the last event it saw', async t => {
  const s = stage(t);
  const queue = s.queue();
  const first = await s.events();
  const seen = heard(first, 'waiting', 3);
  for (let n = 0; n < 3; n++) await queue.add('x', { n });
  const id = (await seen)[2][1];
  assert.match(id, /^\d+-\d+$/);
  await first.close();
  for (let n = 3; n < 6; n++) await queue.add('x', { n });
  const second = await s.events({ lastEventId: id });
  const rest = await heard(second, 'waiting', 3);
  assert.deepEqual(rest.map(([{ jobId }]) => jobId), ['4', '5', '6']);
});

test('a listener without an id hears what comes after it listens', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.add('before', {});
  const events = await s.events({ lastEventId: undefined });
  const raw = s.raw();
  await blocked(raw, 1, 'xread', s.prefix);
  const told = heard(events, 'added');
  await queue.add('after', {});
  assert.equal((await told)[0][0].name, 'after');
});

test('a listener whose connection is cut misses nothing', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const raw = s.raw();
  const all = heard(events, 'added', 30);
  for (let n = 0; n < 30; n++) {
    if (n % 10 === 5) {
      if (n === 5) {
        const [line] = await blocked(raw, 1, 'xread', s.prefix);
        assert.equal(await raw.client('KILL', 'ID', line.id), 1);
      } else {
        (await events.getBackend().client).stream.destroy();
      }
    }
    await queue.add(`${n}`, {});
  }
  assert.deepEqual((await all).map(([{ name }]) => Number(name)), Array.from({ length: 30 }, (_, n) => n));
});

test('waiting for a job gives its result, its failure, or gives up', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  s.worker(async job => {
    if (job.name === 'bad') throw new UnrecoverableError('reason');
    if (job.name === 'slow') await new Promise(resolve => setTimeout(resolve, 400));
    return job.name;
  }, { concurrency: 3 });
  const jobs = await queue.addBulk(['good', 'bad', 'slow'].map(name => ({ name, data: {} })));
  assert.equal(await jobs[0].waitUntilFinished(events), 'good');
  assert.equal(await jobs[0].waitUntilFinished(events), 'good', 'also afterwards');
  await assert.rejects(jobs[1].waitUntilFinished(events), /reason/);
  await assert.rejects(jobs[2].waitUntilFinished(events, 50), /timed out before finishing/);
  assert.equal(await jobs[2].waitUntilFinished(events), 'slow');
});

test('the stream keeps at least its length and not much more', async t => {
  const s = stage(t);
  const queue = s.queue({ streams: { events: { maxLen: 20 } } });
  const raw = s.raw();
  const stream = s.key(s.name, 'events');
  await eventually(async () => assert.equal(await raw.hget(s.key(s.name, 'meta'), 'opts.maxLenEvents'), '20'));
  await queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'x', data: {} })));
  for (let n = 1; n <= 200; n++) await queue.remove(`${n}`);
  const length = await raw.xlen(stream);
  assert.ok(length >= 20 && length <= 120, `${length}`);
  assert.ok((await queue.trimEvents(0)) >= 20);
  assert.equal(await raw.xlen(stream), 0);
});

for (const [ending, work, most] of [
  ['completed', async () => {}, 45],
  ['delayed', async () => { throw new Error('x'); }, 35],
  // These go on while we look, so the bound is Redis's: it drops whole nodes of 100 entries.
  ['retried at once', async () => { throw new Error('x'); }, 120],
]) {
  test(`80 jobs that end ${ending} leave a stream of 20 to ${most} events`, async t => {
    // The bounds of BullMQ's own suite. It is met by trimming whole nodes as Redis does, or to the number.
    const s = stage(t);
    const queue = s.queue({ streams: { events: { maxLen: 20 } } });
    await queue.waitUntilReady();
    const events = await s.events();
    const raw = s.raw();
    const last = ending === 'completed' ? heard(events, 'completed', 80)
      : ending === 'delayed' ? heard(events, 'delayed', 80)
      : new Promise(resolve => events.on('waiting', ({ jobId, prev }) => prev === 'active' && jobId === '80' && resolve()));
    const opts = ending === 'completed' ? {} : ending === 'delayed' ? { attempts: 2, backoff: 60_000 } : { attempts: 2 };
    await queue.addBulk(Array.from({ length: 80 }, () => ({ name: 'test', data: { foo: 'bar' }, opts })));
    const worker = s.worker(async () => { await new Promise(resolve => setTimeout(resolve, 10)); return work(); });
    await last;
    const length = await raw.xlen(s.key(s.name, 'events'));
    assert.ok(length >= 20 && length <= most, `${length}`);
    await worker.close();
  });
}

test('a stream of length 0 still tells the newest', async t => {
  const s = stage(t);
  const queue = s.queue({ streams: { events: { maxLen: 0 } } });
  await queue.waitUntilReady();
  const events = await s.events();
  const raw = s.raw();
  await blocked(raw, 1, 'xread', s.prefix);
  const done = heard(events, 'completed', 3);
  s.worker(async () => new Promise(resolve => setTimeout(resolve, 60)));
  await queue.addBulk([1, 2, 3].map(n => ({ name: 'x', data: { n } })));
  await done;
  const newest = await raw.xrevrange(s.key(s.name, 'events'), '+', '-');
  assert.ok(newest.length <= 2, JSON.stringify(newest));
  assert.deepEqual(newest.map(([, fields]) => fields[1]), ['drained', 'completed']);
});

test('events of one\'s own are published and heard', async t => {
  const s = stage(t);
  const events = await s.events();
  const told = heard(events, 'printed');
  await s.producer().publishEvent({ eventName: 'printed', sheets: 3, by: 'press-1' });
  assert.deepEqual((await told)[0][0], { sheets: '3', by: 'press-1' });
});

test('ids of events only grow', async t => {
  const s = stage(t);
  const queue = s.queue();
  await queue.addBulk(Array.from({ length: 300 }, () => ({ name: 'x', data: {} })));
  const entries = await s.raw().xrange(s.key(s.name, 'events'), '-', '+');
  assert.equal(entries.length, 600);
  const ids = entries.map(([id]) => id.split('-').map(Number));
  for (let n = 1; n < ids.length; n++) {
    assert.ok(ids[n][0] > ids[n - 1][0] || (ids[n][0] === ids[n - 1][0] && ids[n][1] > ids[n - 1][1]));
  }
});
