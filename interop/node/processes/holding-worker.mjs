// A worker in a process of its own that takes a job and never ends it, to be killed while it holds the lock.

import { Worker } from 'bullmq';
import { connection } from '../harness.mjs';

// The test that started this process is gone: so is the reason to stay.
process.on('disconnect', () => process.exit());

const [prefix, name, lockDuration] = process.argv.slice(2);
new Worker(
  name,
  job => {
    process.send({ holds: job.id });
    return new Promise(() => {});
  },
  { connection: connection(), prefix, lockDuration: Number(lockDuration), concurrency: 3, skipStalledCheck: true },
);
