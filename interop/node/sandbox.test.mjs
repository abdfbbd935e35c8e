// Processor files: jobs that run in processes and threads of their own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heard, stage } from './harness.mjs';

const file = new URL('./processes/double.mjs', import.meta.url);

for (const useWorkerThreads of [false, true]) {
  test(`a processor file runs in a ${useWorkerThreads ? 'thread' : 'process'}`, async t => {
    const s = stage(t);
    const queue = s.queue();
    const worker = s.worker(file, { useWorkerThreads, concurrency: 2 });
    const done = heard(worker, 'completed', 4, 60_000);
    await queue.addBulk([1, 2, 3, 4].map(n => ({ name: 'x', data: { n } })));
    const results = (await done).map(([, result]) => result);
    assert.deepEqual(results.map(r => r.twice).sort(), [2, 4, 6, 8]);
    assert.equal(results.every(r => r.pid !== process.pid), !useWorkerThreads);
    const job = await queue.getJob('1');
    assert.deepEqual(job.data, { n: 1, seen: true });
    assert.equal(job.progress, 50);
    assert.deepEqual((await queue.getJobLogs('1')).logs, ['in the sandbox']);

    const failed = heard(worker, 'failed', 1, 60_000);
    await queue.add('x', { fail: true });
    assert.equal((await failed)[0][1].message, 'sandbox failure');
  });
}

test('a processor that exits fails its job only', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(file);
  const failed = heard(worker, 'failed', 1, 60_000);
  await queue.add('x', { exit: true });
  assert.match((await failed)[0][1].message, /Unexpected exit code: 3/);
  const done = heard(worker, 'completed', 1, 60_000);
  await queue.add('x', { n: 21 });
  assert.equal((await done)[0][1].twice, 42);
});
