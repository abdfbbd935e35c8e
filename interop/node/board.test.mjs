// Bull Board over a queue with jobs in every state: what its pages show, and what its buttons do.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import express from 'express';
import { eventually, once, stage } from './harness.mjs';

/** A board on a free port, over a queue with one job in each state. */
async function board(t) {
  const s = stage(t);
  const queue = s.queue();
  const hand = s.worker(null);
  await queue.addBulk([{ name: 'completed', data: { n: 1 } }, { name: 'failed', data: { n: 2 } }, { name: 'active', data: {} }]);
  await (await hand.getNextJob('token')).moveToCompleted({ ok: true }, 'token', false);
  await (await hand.getNextJob('token')).moveToFailed(new Error('no paper'), 'token', false);
  const active = await hand.getNextJob('token');
  await active.log('first line');
  await active.updateProgress(30);
  await queue.addBulk([
    { name: 'waiting', data: { text: 'é' } },
    { name: 'delayed', data: {}, opts: { delay: 600_000 } },
    { name: 'prioritized', data: {}, opts: { priority: 5 } },
  ]);
  await s.flow().add({ name: 'waiting-children', queueName: s.name, children: [{ name: 'child', queueName: 'idle', data: {} }] });
  await queue.upsertJobScheduler('nightly', { pattern: '0 0 3 * * *' }, { name: 'close', data: {} });

  const adapter = new ExpressAdapter();
  adapter.setBasePath('/board');
  createBullBoard({ queues: [new BullMQAdapter(queue)], serverAdapter: adapter });
  const app = express();
  app.use('/board', adapter.getRouter());
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => new Promise(resolve => (server.close(resolve), server.closeAllConnections())));
  const address = `http://127.0.0.1:${server.address().port}/board`;
  const ask = async (method, path, body) => {
    const response = await fetch(address + path, { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text;
  };
  const own = path => `/api/queues/${s.name}${path}`;
  return { s, queue, address, ask, own };
}

test('the overview shows every state\'s count', async t => {
  const { s, ask } = await board(t);
  const { queues } = await ask('GET', '/api/queues');
  assert.equal(queues.length, 1);
  assert.equal(queues[0].name, s.name);
  const { counts } = queues[0];
  const expected = { completed: 1, failed: 1, active: 1, waiting: 1, delayed: 2, prioritized: 1, 'waiting-children': 1 };
  for (const [state, count] of Object.entries(expected)) assert.equal(counts[state], count, `${state} in ${JSON.stringify(counts)}`);
  assert.equal(queues[0].isPaused, false);
});

test('each state\'s page shows its jobs', async t => {
  const { s, ask } = await board(t);
  for (const state of ['completed', 'failed', 'active', 'waiting', 'prioritized', 'waiting-children']) {
    const { queues } = await ask('GET', `/api/queues?activeQueue=${s.name}&status=${state}&page=1&jobsPerPage=10`);
    assert.deepEqual(queues[0].jobs.map(job => job.name), [state]);
  }
  const { queues } = await ask('GET', `/api/queues?activeQueue=${s.name}&status=failed`);
  const [failed] = queues[0].jobs;
  assert.equal(failed.failedReason, 'no paper');
  assert.deepEqual(failed.data, { n: 2 });
  assert.match(failed.stacktrace[0], /no paper/);
});

test('the server\'s figures are all there', async t => {
  const { ask, s } = await board(t);
  const worker = s.worker(async () => {}, {}, 'busy');
  await worker.waitUntilReady();
  const stats = await ask('GET', '/api/redis/stats');
  assert.match(stats.version, /^\d+\.\d+\.\d+/);
  assert.equal(stats.mode, 'standalone');
  assert.ok(stats.os);
  for (const [name, value] of Object.entries({ port: stats.port, uptime: stats.uptime, total: stats.memory.total, used: stats.memory.used, peak: stats.memory.peak, ratio: stats.memory.fragmentationRatio, connected: stats.clients.connected, blocked: stats.clients.blocked })) {
    assert.equal(typeof value, 'number', `${name}: ${JSON.stringify(stats)}`);
  }
  assert.ok(stats.memory.used > 0 && stats.memory.total > stats.memory.used);
  assert.ok(stats.memory.peak >= stats.memory.used * 0.5);
  assert.ok(stats.clients.connected >= 2);
});

test('one job is shown with its logs, and edited', async t => {
  const { ask, own, queue } = await board(t);
  const { job, status } = await ask('GET', own('/3'));
  assert.equal(job.name, 'active');
  assert.equal(status, 'active');
  assert.equal(job.progress, 30);
  assert.deepEqual(await ask('GET', own('/3/logs')), ['first line']);
  await ask('PATCH', own('/4/update-data'), { jobData: { text: 'changed' } });
  assert.deepEqual((await queue.getJob('4')).data, { text: 'changed' });
});

test('retry, promote, clean and remove do what they say', async t => {
  const { ask, own, queue, s } = await board(t);
  await ask('PUT', own('/2/retry'));
  assert.equal(await queue.getJobState('2'), 'waiting');
  await ask('PUT', own('/5/promote'));
  assert.equal(await queue.getJobState('5'), 'waiting');
  await ask('PUT', own('/4/clean'));
  assert.equal(await queue.getJob('4'), undefined);
  // The board spares what finished in the last seconds.
  const raw = s.raw();
  await raw.zadd(s.key(s.name, 'completed'), Date.now() - 60_000, '1');
  await raw.hset(s.key(s.name, '1'), 'finishedOn', Date.now() - 60_000);
  await ask('PUT', own('/clean/completed'));
  assert.equal(await queue.getCompletedCount(), 0);
  await ask('PUT', own('/pause'));
  assert.equal(await queue.isPaused(), true);
  await ask('PUT', own('/resume'));
  assert.equal(await queue.isPaused(), false);
  const added = await ask('POST', own('/add'), { name: 'by hand', data: { n: 1 }, options: {} });
  assert.ok(added.job?.id ?? added.jobId ?? added);
  assert.ok((await queue.getWaiting()).some(job => job.name === 'by hand'));
  await ask('PUT', own('/empty'));
  assert.equal(await queue.getWaitingCount(), 0);
});

test('all failed jobs are retried at once', async t => {
  const { ask, own, queue } = await board(t);
  await ask('PUT', own('/retry/failed'));
  await eventually(async () => assert.equal(await queue.getFailedCount(), 0));
});

test('schedulers, workers, limits and flows have their pages', async t => {
  const { ask, own, s, queue } = await board(t);
  assert.match(JSON.stringify(await ask('GET', '/api/job-schedulers')), /nightly/);
  s.worker(async () => {}, { name: 'press-1', autorun: false });
  await eventually(async () => assert.match(JSON.stringify(await ask('GET', own('/workers'))), /press-1/));
  await ask('PUT', own('/concurrency'), { concurrency: 3 });
  assert.equal(await queue.getGlobalConcurrency(), 3);
  const parent = (await queue.getWaitingChildren())[0];
  assert.match(JSON.stringify(await ask('GET', own(`/${parent.id}/flow`))), /child/);
  await ask('GET', own('/metrics'));
});

test('the page itself opens', async t => {
  const { address, s } = await board(t);
  const page = await (await fetch(`${address}/`)).text();
  assert.match(page, /<div id="root">/);
  const [script] = page.match(/static\/js\/[^"]+\.js/);
  assert.ok((await fetch(`${address}/${script}`)).ok);
  // BOARD_PICTURE=path takes a picture for a person to look at.
  const picture = process.env.BOARD_PICTURE;
  if (!picture) return;
  const browser = process.env.CHROMIUM ?? '/usr/bin/chromium';
  await promisify(execFile)(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--window-size=1280,800', '--virtual-time-budget=8000', `--screenshot=${picture}`, `${address}/queue/${s.name}?status=failed`], { timeout: 60_000 });
  assert.ok((await stat(picture)).size > 10_000);
});
