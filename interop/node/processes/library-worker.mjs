// A worker of bull or bee-queue in a process of its own: library-worker.mjs <library> <port> <queue>. It sends every run
// to the test that started it, and ends when it is asked to, after the jobs it holds.

import Bee from 'bee-queue';
import Bull from 'bull';

process.on('disconnect', () => process.exit());

const [library, port, name] = process.argv.slice(2);
const redis = { host: '127.0.0.1', port: Number(port) };
const failures = new Map();

function run({ n, stumbles = 0 }) {
  process.send({ ran: n, at: Date.now() });
  const failed = failures.get(n) ?? 0;
  if (failed < stumbles) {
    failures.set(n, failed + 1);
    throw new Error('not yet');
  }
  return n * 2;
}

let close;
if (library === 'bull') {
  // A job that a worker fetched while it closed, and never began, is found after a second.
  const queue = new Bull(name, { redis, settings: { stalledInterval: 1000 } });
  queue.on('error', () => {});
  queue.process(5, async job => run(job.data));
  close = () => queue.close();
} else {
  const queue = new Bee(name, { redis, activateDelayedJobs: true, stallInterval: 1000 });
  queue.on('error', () => {});
  queue.process(5, async job => run(job.data));
  await queue.checkStalledJobs(1000);
  close = () => queue.close(30_000);
}
process.on('message', async () => {
  await close();
  process.exit();
});
process.send({ ready: true });
