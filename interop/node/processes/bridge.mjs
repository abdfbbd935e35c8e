// Node's side of the tests between the languages; Python starts it and reads its lines.
//
//   bridge.mjs add PREFIX QUEUE JOBS     adds JOBS (JSON), prints their ids
//   bridge.mjs show PREFIX QUEUE ID      prints a job as Node reads it
//   bridge.mjs work PREFIX QUEUE         works until its standard input ends, prints each job it finished
//   bridge.mjs flow PREFIX FLOW          adds a flow (JSON), prints the parent's id

import { FlowProducer, Queue, Worker } from 'bullmq';
import { connection, pause } from '../harness.mjs';

const [duty, prefix, name, more] = process.argv.slice(2);
const options = { connection: connection(), prefix };
const print = value => console.log(JSON.stringify(value));

if (duty === 'add') {
  const queue = new Queue(name, options);
  print((await queue.addBulk(JSON.parse(more))).map(job => job.id));
  await queue.close();
} else if (duty === 'show') {
  const queue = new Queue(name, options);
  const job = await queue.getJob(more);
  const { logs } = await queue.getJobLogs(more);
  print({ ...job.toJSON(), state: await job.getState(), logs });
  await queue.close();
} else if (duty === 'work') {
  const worker = new Worker(name, async job => {
    if (job.data.fail) throw new Error(`node failed: ${job.data.fail}`);
    await job.log('worked on by node');
    if (job.data.ms) await pause(job.data.ms);
    return { by: 'node', got: job.data, children: await job.getChildrenValues() };
  }, options);
  worker.on('completed', job => print({ completed: job.id }));
  worker.on('failed', job => print({ failed: job.id }));
  await worker.waitUntilReady();
  print('ready');
  process.stdin.resume().on('end', () => worker.close());
} else if (duty === 'flow') {
  const producer = new FlowProducer(options);
  print((await producer.add(JSON.parse(name))).job.id);
  await producer.close();
}
