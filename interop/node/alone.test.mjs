// What touches the whole server, run when nothing else does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, heard, stage } from './harness.mjs';

test('scripts are loaded again after SCRIPT FLUSH, also in pipelines', async t => {
  const s = stage(t);
  const raw = s.raw();
  const queue = s.queue();
  const worker = s.worker(async job => job.name);
  for (const flush of [['FLUSH'], ['FLUSH', 'SYNC'], ['FLUSH', 'ASYNC']]) {
    const done = heard(worker, 'completed', 4);
    await queue.add('one', {});
    assert.equal(await raw.script(...flush), 'OK');
    await queue.addBulk(['two', 'three'].map(name => ({ name, data: {} })));
    assert.equal(await raw.script(...flush), 'OK');
    await queue.add('four', {});
    await done;
  }
});

test('FLUSHALL empties every database at once, and queues go on', async t => {
  const s = stage(t);
  const raw = s.raw();
  const other = s.raw({ db: 3 });
  const queue = s.queue();
  await queue.addBulk(Array.from({ length: 5000 }, (_, n) => ({ name: 'x', data: { n } })));
  await other.set('k', 'v');
  assert.ok((await raw.dbsize()) > 5000);
  const began = performance.now();
  assert.equal(await raw.flushall(), 'OK');
  assert.ok(performance.now() - began < 5000);
  assert.equal(await raw.dbsize(), 0);
  assert.equal(await other.dbsize(), 0);
  assert.equal((await queue.add('again', {})).id, '1');
  await other.set('k', 'v');
  await raw.flushdb('ASYNC');
  assert.equal(await other.get('k'), 'v');
  await other.flushdb();
});

test('a worker waiting through FLUSHALL is woken by the next job', async t => {
  const s = stage(t);
  const raw = s.raw();
  const queue = s.queue();
  const worker = s.worker(async () => 'ran');
  await worker.waitUntilReady();
  await eventually(async () => (await raw.client('LIST')).includes('cmd=bzpopmin'));
  await raw.flushall();
  const done = heard(worker, 'completed');
  await queue.add('x', {});
  assert.equal((await done)[0][1], 'ran');
});

test('killing all normal clients is survived by everyone', async t => {
  const s = stage(t);
  const raw = s.raw();
  const queue = s.queue();
  const events = await s.events();
  const worker = s.worker(async job => job.data.n);
  await eventually(async () => (await raw.client('LIST')).includes('cmd=bzpopmin'));
  for (let n = 0; n < 3; n++) {
    const heardIt = heard(events, 'completed');
    assert.ok((await raw.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes')) >= 3);
    await queue.add('x', { n });
    assert.equal((await heardIt)[0][0].returnvalue, n);
  }
  await worker.close();
});

test('configuration that clients look at can be read and set', async t => {
  const raw = stage(t).raw();
  assert.deepEqual(Object.entries(await raw.config('GET', 'maxmemory-policy')).flat().map(String).filter(v => !/^\d$/.test(v)), ['maxmemory-policy', 'noeviction']);
  assert.equal(await raw.config('SET', 'maxmemory-policy', 'noeviction'), 'OK');
  await assert.rejects(raw.config('SET', 'no-such-thing', '1'), /Unknown option or number of arguments for CONFIG SET - 'no-such-thing'/);
  assert.equal(Object.keys(await raw.config('GET', 'no-such-thing')).length, 0);
  assert.equal(await raw.config('RESETSTAT'), 'OK');
});
