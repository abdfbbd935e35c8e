// Node's side of crates/broker/tests/it/interop: reads one JSON request a line, answers with one line each.
// `node peer.mjs redis://…`; the workers it starts report each job as a line, too.

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import express from 'express';

const { hostname, port } = new URL(process.argv[2]);
const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
const say = value => process.stdout.write(`${JSON.stringify(value)}\n`);
const queues = new Map();
const open = [];

function queue(name) {
  if (!queues.has(name)) queues.set(name, new Queue(name, { connection }));
  return queues.get(name);
}

let board;

const requests = {
  async add({ queue: name, jobs }) {
    const added = await queue(name).addBulk(jobs);
    return added.map(job => job.id);
  },

  async flow({ flow }) {
    const producer = new FlowProducer({ connection });
    const { job } = await producer.add(flow);
    await producer.close();
    return job.id;
  },

  // Works on a queue: jobs named "fail" fail, others answer with who did them.
  async work({ queue: name, slots = 1 }) {
    const worker = new Worker(name, async job => {
      if (job.name === 'fail') throw new Error('Node cannot do this');
      return { by: 'node', children: await job.getChildrenValues() };
    }, { connection, concurrency: slots });
    open.push(worker);
    worker.on('completed', job => say({ completed: job.id, data: job.data }));
    worker.on('failed', job => say({ failed: job.id }));
    await worker.waitUntilReady();
    return 'working';
  },

  // Reports what QueueEvents hears.
  async listen({ queue: name, events }) {
    const heard = new QueueEvents(name, { connection });
    open.push(heard);
    for (const event of events) heard.on(event, details => say({ event, ...details }));
    await heard.waitUntilReady();
    return 'listening';
  },

  // Waits for the end of a job, whoever brings it about; reports it when it comes.
  async await({ queue: name, id }) {
    const heard = new QueueEvents(name, { connection });
    open.push(heard);
    await heard.waitUntilReady();
    const job = await queue(name).getJob(id);
    job.waitUntilFinished(heard, 60000).then(
      value => say({ finished: id, value }),
      error => say({ finished: id, error: error.message }),
    );
    return 'waiting';
  },

  async job({ queue: name, id }) {
    const job = await queue(name).getJob(id);
    return job && { ...job.asJSON(), state: await job.getState() };
  },

  async workers({ queue: name }) {
    return (await queue(name).getWorkers()).map(worker => worker.rawname ?? worker.name);
  },

  // A request to Bull Board, over HTTP as a browser would.
  async board({ queues: names, method, path }) {
    if (!board) {
      const adapter = new ExpressAdapter();
      createBullBoard({ queues: names.map(name => new BullMQAdapter(queue(name))), serverAdapter: adapter });
      const server = express().use(adapter.getRouter()).listen(0, '127.0.0.1');
      await once(server, 'listening');
      open.push({ close: () => (server.close(), server.closeAllConnections()) });
      board = `http://127.0.0.1:${server.address().port}`;
    }
    const response = await fetch(board + path, { method });
    const text = await response.text();
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  try {
    say({ answer: await requests[request.do](request) });
  } catch (error) {
    say({ error: String(error.stack ?? error) });
  }
}
for (const thing of [...open, ...queues.values()]) await thing.close();
process.exit(0);
