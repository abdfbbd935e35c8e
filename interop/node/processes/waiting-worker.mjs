// A worker in a process of its own, to be killed while it waits for a job.

import { Worker } from 'bullmq';
import { connection } from '../harness.mjs';

// The test that started this process is gone: so is the reason to stay.
process.on('disconnect', () => process.exit());

const [prefix, name] = process.argv.slice(2);
const worker = new Worker(name, async () => 'ran by the child', { connection: connection(), prefix, drainDelay: 60 });
await worker.waitUntilReady();
process.send('ready');
